"""Resources and prompts beside typed tools, by the core's handlers."""

from mcp_core import Client, RequestContext, ResourceNotFound
from mcp_core.types import (
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    PaginatedRequestParams,
    Prompt,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
)
from mcp_typed import MCPServer

mcp = MCPServer("Bikes")


def list_resources(ctx: RequestContext, params: PaginatedRequestParams) -> ListResourcesResult:
    return ListResourcesResult(resources=[Resource(uri="bikes://rules", name="House rules")])


def read_resource(ctx: RequestContext, params: ReadResourceRequestParams) -> ReadResourceResult:
    if params.uri != "bikes://rules":
        raise ResourceNotFound(params.uri)
    return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text="Ride on the right.")])


def list_prompts(ctx: RequestContext, params: PaginatedRequestParams) -> ListPromptsResult:
    return ListPromptsResult(prompts=[Prompt(name="complain")])


def get_prompt(ctx: RequestContext, params: GetPromptRequestParams) -> GetPromptResult:
    message = PromptMessage(role="user", content=TextContent(text="My bike squeaks."))
    return GetPromptResult(messages=[message])


core = mcp.server
core.add_request_handler("resources/list", PaginatedRequestParams, list_resources)
core.add_request_handler("resources/read", ReadResourceRequestParams, read_resource)
core.add_request_handler("prompts/list", PaginatedRequestParams, list_prompts)
core.add_request_handler("prompts/get", GetPromptRequestParams, get_prompt)


async def read(uri: str) -> dict[str, str]:
    async with Client(mcp) as client:
        (contents,) = (await client.read_resource(uri)).contents
        (message,) = (await client.get_prompt("complain")).messages
    assert isinstance(contents, TextResourceContents)
    assert isinstance(message.content, TextContent)
    return {"text": contents.text, "message": message.content.text}
