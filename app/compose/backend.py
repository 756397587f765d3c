"""Sets up the questions to the application that decides about clients."""

import socket
from collections.abc import Iterable
from contextlib import AsyncExitStack

from holdfast.compose.own_places import own_places
from holdfast.login.backend.asking import AT_ONCE
from holdfast.login.backend.logins import BackendLogins
from holdfast.login.backend.questions import MOST_READ
from holdfast.settings import Settings
from holdfast.settings.login import BackendSettings
from holdfast.web.outgoing.allowed_addresses import AllowedAddresses
from holdfast.web.outgoing.signed_posts import SignedPosts


async def open_backend(
    settings: Settings,
    backend: BackendSettings,
    logins: BackendLogins,
    sockets: Iterable[socket.socket],
    stack: AsyncExitStack,
) -> None:
    """Begin to ask; `stack` ends it.

    Args:
        sockets: Those at which the server listens.
    """
    places = await own_places(settings, sockets)
    posts = SignedPosts(
        backend,
        AllowedAddresses(places, allows_private=backend.allow_private),
        at_once=AT_ONCE,
        timeout_s=backend.timeout / 1000,
        most_read=MOST_READ,
        reads_all=True,
    )
    await posts.open(stack)
    logins.asking.post = posts.post
