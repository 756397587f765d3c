"""The table of all routes of the administration."""

import asyncio
from importlib import import_module
from typing import Any

from holdfast.web.admin.all_hosts import HostResource
from holdfast.web.admin.letters import LetterResource
from holdfast.web.admin.listed import LISTED
from holdfast.web.admin.messages import MessageResource
from holdfast.web.admin.past import PastResource
from holdfast.web.admin.paths import API
from holdfast.web.admin.readers import ReaderResource
from holdfast.web.admin.route import route, routes_of
from holdfast.web.admin.sessions import SessionResource
from holdfast.web.admin.shared_queues import SharedQueueResource
from holdfast.web.admin.system import SystemResource
from holdfast.web.admin.topics import TopicResource
from holdfast.web.admin.upgrade import UpgradeResource
from holdfast.web.admin.webhooks import WebhookResource


class Description:
    """The resource that describes the routes."""

    @route("GET", "/openapi.json")
    async def description(self) -> dict[str, Any]:
        """Show this description."""
        # A start need not wait for it: only consoles and authors of clients ask.
        from holdfast.web.admin.openapi import describe

        for each in ROUTES:
            each.build()
        # It takes a tenth of a second.
        return await asyncio.to_thread(describe, ROUTES, "/admin" + API)


# The classes of resources that list what `LISTED` has. Each needs the running server.
LISTS: tuple[type, ...] = tuple(
    getattr(import_module(module), name) for module, name in (each.resource for each in LISTED)
)
ROUTES = routes_of(
    [
        SystemResource,
        MessageResource,
        SessionResource,
        SharedQueueResource,
        ReaderResource,
        WebhookResource,
        *LISTS,
        TopicResource,
        LetterResource,
        PastResource,
        UpgradeResource,
        HostResource,
        Description,
    ]
)
