"""Telling clients that something has changed."""

from mcp_core import Client, RequestContext, Server
from mcp_core.subscriptions import ResourceUpdated
from mcp_core.types import ListResourcesResult, PaginatedRequestParams, Resource

RESOURCE = Resource(uri="book://dune", name="Dune")


def list_resources(ctx: RequestContext, params: PaginatedRequestParams) -> ListResourcesResult:
    return ListResourcesResult(resources=[RESOURCE])


server = Server("Bookshop", subscriptions=True, on_list_resources=list_resources)


async def watch() -> str:
    async with Client(server) as client, client.listen(resource_subscriptions=["book://dune"]) as changes:
        await server.publish(ResourceUpdated("book://dune"))
        return str(await anext(changes))
