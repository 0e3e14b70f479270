"""Asking the user by hand, each era in its way."""

from mcp_core import Client, RequestContext, Server
from mcp_core.client import Mode
from mcp_core.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    TextContent,
)

QUESTION = "Send it by post?"
FORM = {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]}


async def call_tool(ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    if ctx.protocol_version < "2026-07-28":
        content = (await ctx.elicit(QUESTION, FORM)).content
    elif params.input_responses is None:
        form = ElicitRequestFormParams(message=QUESTION, requested_schema=FORM)
        return InputRequiredResult(input_requests={"post": InputRequest(method="elicitation/create", params=form)})
    else:
        content = params.input_responses["post"].get("content")
    where = f"to {content['street']}" if content else "kept at the desk"
    return CallToolResult(content=[TextContent(text=where)])


server = Server("Bookshop", on_call_tool=call_tool)


async def send(mode: Mode) -> str:
    def answer(ctx: object, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"street": "Oude Delft 1"})

    async with Client(server, mode=mode, elicitation_callback=answer) as client:
        (block,) = (await client.call_tool("send")).content
    assert isinstance(block, TextContent)
    return block.text
