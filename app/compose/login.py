"""Sets up the login of clients."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.for_extensions import ForExtensions
from holdfast.bayeux.state.server_state import ServerState
from holdfast.compose.cannot_start import CannotStart
from holdfast.login.authenticator import Authenticator, Methods
from holdfast.login.extension import Logins
from holdfast.login.failures import Unusable
from holdfast.login.key_sources import KeyFile, KeySource, KeyUrl, at, discovered
from holdfast.login.passwords import read_users
from holdfast.login.rights_file import RightsFile, read_rights, without_file
from holdfast.login.rules import RuleGrants
from holdfast.login.watched_file import WatchedFile
from holdfast.settings import Settings
from holdfast.web.admin.tokens import Tokens
from holdfast.web.fetching import open_fetcher
from holdfast.web.tasks import run_until_closed

if TYPE_CHECKING:
    from holdfast.compose.backend import BackendParts
    from holdfast.login.backend.logins import BackendLogins

_Source = TypeVar("_Source")


@dataclass(frozen=True, slots=True)
class InstalledLogin:
    """How clients log in, and the backend that decides about them, if there is one."""

    logins: Logins
    # Those that are read again.
    files: Sequence[WatchedFile[Any]]
    backend: "BackendLogins | None" = None

    async def open(self, settings: Settings, ports: Collection[int], stack: AsyncExitStack) -> None:
        """Begin to ask the backend, if there is one; `stack` ends it."""
        if self.backend is not None and settings.backend is not None:
            from holdfast.compose.backend import open_backend

            await open_backend(settings, settings.backend, self.backend, ports, stack)


def install_login(
    settings: Settings,
    server: ForExtensions,
    state: ServerState,
    stack: AsyncExitStack,
    tokens: Tokens,
    key: bytes,
) -> InstalledLogin:
    """Install what the settings ask for. Raises `CannotStart`."""
    parts = None
    if settings.backend is not None:
        from holdfast.compose.backend import make_backend

        parts = make_backend(settings.backend, server, state, stack)

    def is_operators(token: str) -> bool:
        return tokens.role(token) is not None

    methods = _methods(settings, stack, None if parts is None else parts.logins)
    rights = _rights(settings)
    logins = _make_logins(settings, server, stack, is_operators, key, parts, methods, rights)
    keys = methods.keys.file if isinstance(methods.keys, KeyFile) else None
    files = [each for each in (rights, methods.users, keys) if each is not None]
    return InstalledLogin(logins, files, None if parts is None else parts.logins)


def _make_logins(
    settings: Settings,
    server: ServerApi,
    stack: AsyncExitStack,
    is_operators: Callable[[str], bool],
    key: bytes,
    backend: "BackendParts | None",
    methods: Methods,
    rights: WatchedFile[RightsFile] | None,
) -> Logins:
    logins = Logins(
        server,
        Authenticator(methods),
        of_administration=_of_administration(methods),
        rights=rights,
        otherwise=without_file(has_claims=settings.login_rights_claim is not None),
        is_operators=is_operators,
        warning_s=settings.login_warning / 1000,
        key=key,
        grants_of=RuleGrants if backend is None else backend.grants_of,
        refreshing=None if backend is None else backend.refreshing,
        decide=None if backend is None else backend.questions.decide,
    )
    # Before all others: the name that a client claims depends on its login.
    server.extend(logins)
    run_until_closed(stack, logins.run())
    return logins


def _rights(settings: Settings) -> WatchedFile[RightsFile] | None:
    if settings.rights is None:
        return None
    reading = partial(read_rights, has_backend=settings.backend is not None)
    return _read("rights", partial(WatchedFile, settings.rights, reading))


def _of_administration(methods: Methods) -> Authenticator:
    """Return how requests to the administration log in: without cookies, and not anonymously.

    Any page of this site could send a request with its users' cookies.
    """
    others = {"login_cookie": None, "login_anonymous": False}
    settings = methods.settings.model_copy(update=others)
    return Authenticator(replace(methods, settings=settings, backend=None))


def _methods(settings: Settings, stack: AsyncExitStack, backend: "BackendLogins | None") -> Methods:
    users = None
    if settings.login_passwords is not None:
        users = _read("login_passwords", partial(WatchedFile, settings.login_passwords, read_users))
    return Methods(
        settings,
        keys=_keys(settings, stack) if settings.takes_tokens else None,
        users=users,
        backend=backend,
    )


def _keys(settings: Settings, stack: AsyncExitStack) -> KeySource:
    place, issuer = settings.login_keys, settings.login_issuer
    if place is not None and "://" not in place:
        return _read("login_keys", partial(KeyFile, Path(place)))
    fetch = open_fetcher(stack)
    if place is not None:
        return KeyUrl(at(place), fetch, monotonic)
    return KeyUrl(discovered(issuer or "", tuple(settings.login_key_host), fetch), fetch, monotonic)


def _read(setting: str, opened: Callable[[], _Source]) -> _Source:
    """Read the file of a setting. Raises `CannotStart` with the setting's name."""
    try:
        return opened()
    except Unusable as error:
        raise CannotStart(f"{setting}: {error}") from error
