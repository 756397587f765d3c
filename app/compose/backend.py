"""Sets up the questions to the application that decides about clients."""

from collections.abc import Collection
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
    ports: Collection[int],
    stack: AsyncExitStack,
) -> None:
    """Begin to ask; `stack` ends it.

    Args:
        ports: Those at which the deployment listens.
    """
    places = await own_places(settings, ports)
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
