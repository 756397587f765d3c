"""The table of all routes of the administration."""

from typing import Any

from holdfast.web.admin.address import API
from holdfast.web.admin.letters import Letters
from holdfast.web.admin.messages import Messages
from holdfast.web.admin.openapi import describe
from holdfast.web.admin.route import route, routes_of
from holdfast.web.admin.sessions import Sessions
from holdfast.web.admin.shared_queues import SharedQueues
from holdfast.web.admin.system import System
from holdfast.web.admin.topics import Topics


class Description:
    """The service that describes the routes."""

    @route("GET", "/openapi.json")
    async def description(self) -> dict[str, Any]:
        """Show this description."""
        return describe(ROUTES, "/admin" + API)


ROUTES = routes_of([System, Messages, Sessions, SharedQueues, Topics, Letters, Description])
