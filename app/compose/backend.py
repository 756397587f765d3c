"""Sets up the questions to the application that decides about clients."""

from collections.abc import Collection
from contextlib import AsyncExitStack
from time import monotonic
from typing import NamedTuple

from holdfast.bayeux.for_extensions import ForExtensions
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.login import Login
from holdfast.compose.own_places import own_places
from holdfast.login.backend.channels import ChannelQuestions, why_not
from holdfast.login.backend.decisions import AskingGrants
from holdfast.login.backend.logins import BackendLogins
from holdfast.login.backend.places import AT_ONCE
from holdfast.login.backend.questions import MOST_READ
from holdfast.login.backend.refreshing import LoginRefreshing
from holdfast.login.backend.reviews import Reviews
from holdfast.login.rules import Rules
from holdfast.settings import Settings
from holdfast.settings.login import BackendSettings
from holdfast.web.outgoing.allowed_addresses import AllowedAddresses
from holdfast.web.outgoing.signed_posts import SignedPosts
from holdfast.web.tasks import run_until_closed


class BackendParts(NamedTuple):
    """What asks the backend."""

    logins: BackendLogins
    questions: ChannelQuestions
    refreshing: LoginRefreshing

    @staticmethod
    def grants_of(rules: Rules, login: Login) -> AskingGrants:
        """Return the rights of a login, which the backend decides about where rules say so."""
        return AskingGrants(rules, login, monotonic)


def make_backend(
    backend: BackendSettings, server: ForExtensions, state: ServerState, stack: AsyncExitStack
) -> BackendParts:
    """Make what asks the backend. It asks nothing before `open_backend`."""
    logins = BackendLogins.of(backend)
    questions = ChannelQuestions(logins, state.channels, state.run_later)
    state.backend, state.questions = logins.asking.figures, questions
    state.rights.why_not = why_not
    run_until_closed(stack, Reviews(questions, server.reauthorize).run())
    return BackendParts(logins, questions, LoginRefreshing(logins, state.run_later))


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
