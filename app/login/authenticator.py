"""Authentication: turns the credentials of a client into a login."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.login import Login, LoginMethod, Vouched
from holdfast.bayeux.wire.terms import is_subject
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.login import passwords
from holdfast.login.credentials import (
    PasswordCredentials,
    password_of,
    shown_by,
    token_of,
    tokens_of,
)
from holdfast.login.failures import Cause, LoginFailed, NoAnswer, SaysNo
from holdfast.login.key_sources import KeySource
from holdfast.login.passwords import CheckedPasswords, User, Users
from holdfast.login.tokens import key_id_of, subject_in, verify
from holdfast.login.verification_keys import VerificationKeys
from holdfast.login.watched_file import WatchedFile
from holdfast.settings.login import LoginSettings

# Each keeps a processor busy for 20 ms, and the event loop needs one.
_PASSWORDS_AT_ONCE = 2

ANONYMOUS = Login(NOBODY, LoginMethod.ANONYMOUS)


class Backend(Protocol):
    """The application that is asked about clients without other credentials."""

    def can_ask(self, message: Json, caller: Caller, /) -> bool:
        """Return whether a client shows anything by which the application could know it."""
        ...

    async def login(self, message: Json, caller: Caller, /) -> Login:
        """Return the login of the client. Raises `LoginFailed`, `NoAnswer` or `SaysNo`."""
        ...


@dataclass(frozen=True, slots=True)
class Methods:
    """The configured ways to log in."""

    settings: LoginSettings
    keys: KeySource | None = None
    users: WatchedFile[Users] | None = None
    backend: Backend | None = None


class Authenticator:
    """Tries the configured methods in order; the first credentials that are found decide."""

    def __init__(self, methods: Methods) -> None:
        self._methods = methods
        self._hashing = asyncio.Semaphore(_PASSWORDS_AT_ONCE)
        self._checked = CheckedPasswords()

    async def authenticate(
        self, handshake: Json, caller: Caller, may_guess: Callable[[], bool]
    ) -> Login:
        """Return the login of a new client. Raises `LoginFailed`, `NoAnswer` or `SaysNo`.

        A password is tried only if the client may guess; tokens cannot be guessed.
        """
        login = await self._prove(handshake, caller, may_guess)
        if login is not None:
            return login
        if not self._methods.settings.login_anonymous:
            raise LoginFailed(Cause.MISSING)
        return ANONYMOUS

    def named_by(self, handshake: Json, caller: Caller) -> str | None:
        """Return the subject that the credentials of a handshake name; nothing is proved by that.

        It is the one that `authenticate` proves, if it proves one.
        """
        methods = self._methods
        try:
            if methods.keys is not None:
                tokens = tokens_of(handshake, caller, methods.settings.login_cookie)
                if tokens:
                    return self._named_in(tokens, methods.keys.keys())
            if methods.users is not None:
                found = password_of(handshake, caller)
                if found is not None:
                    return found.subject
            login = _proved_by(caller, methods.settings)
        except LoginFailed:
            return None
        if login is None and caller.vouched is not None:
            login = caller.vouched.login
        return None if login is None else login.subject

    def asks_about(self, handshake: Json, caller: Caller) -> bool:
        """Return whether `authenticate` asks the backend about a client."""
        methods = self._methods
        if methods.backend is None or caller.vouched is not None:
            return False
        try:
            if methods.keys is not None and tokens_of(
                handshake, caller, methods.settings.login_cookie
            ):
                return False
            if methods.users is not None and password_of(handshake, caller) is not None:
                return False
            if _proved_by(caller, methods.settings) is not None:
                return False
            return methods.backend.can_ask(handshake, caller)
        except LoginFailed:
            return False

    def _named_in(self, tokens: list[str], keys: VerificationKeys) -> str | None:
        if len(tokens) > 1:
            # Other hosts of the domain may have set some of them.
            with suppress(LoginFailed):
                return self._proved_in(tokens, keys).subject
        return subject_in(tokens[0], self._methods.settings)

    async def by_backend(self, handshake: Json, caller: Caller) -> Login:
        """Return the login that the backend gives. Raises `LoginFailed`, `NoAnswer` or `SaysNo`."""
        if self._methods.backend is None:
            raise LoginFailed(Cause.MISSING)
        return await self._methods.backend.login(handshake, caller)

    def renewed(self, message: Json, login: Login) -> Login | None:
        """Return the login that a message's token proves; None if this login cannot be renewed.

        Raises `LoginFailed`, also if the token is another subject's.
        """
        keys = self._methods.keys
        if keys is None or login.method is not LoginMethod.TOKEN:
            return None
        renewed = verify(token_of(message), keys.keys(), self._methods.settings)
        if renewed.subject != login.subject:
            raise LoginFailed(Cause.CONTRADICTION)
        return renewed

    def shown_by(self, caller: Caller) -> str:
        """Return the tokens and passwords that a request shows besides its messages."""
        return shown_by(caller, self._methods.settings.login_cookie)

    def check_shown(self, login: Login, caller: Caller) -> Login:
        """Return the login that a later request shows in its own headers; if none, the session's.

        A password is not hashed again, which would take too long, but the user must be the same:
        without this header, the request would be accepted, too. Raises `LoginFailed`.
        """
        methods, shown = self._methods, login
        if methods.keys is not None:
            tokens = tokens_of({}, caller, methods.settings.login_cookie)
            if tokens:
                shown = self._proved_in(tokens, methods.keys.keys())
        password = None if methods.users is None else password_of({}, caller)
        subjects = {login.subject, shown.subject}
        if password is not None:
            subjects.add(password.subject)
        if len(subjects) > 1:
            raise LoginFailed(Cause.CONTRADICTION)
        return shown

    def still_names(self, login: Login, caller: Caller) -> bool:
        """Return whether a request still names the subject and the groups that it named at first.

        The user of a proxy may have logged out there or lost a group, and another may have logged
        in with the same browser. A connection may come with another certificate, or with none.
        """
        prove = _OF_REQUESTS.get(login.method)
        if prove is None:
            return True
        try:
            named = prove(caller, self._methods.settings)
        except LoginFailed:
            return False
        return named is not None and (named.subject, named.groups) == (login.subject, login.groups)

    async def renew_keys(self, key_id: object) -> None:
        """Get newer keys, if there may be any."""
        if self._methods.keys is not None:
            await self._methods.keys.renew(key_id)

    async def _prove(
        self, handshake: Json, caller: Caller, may_guess: Callable[[], bool]
    ) -> Login | None:
        methods = self._methods
        if methods.keys is not None:
            tokens = tokens_of(handshake, caller, methods.settings.login_cookie)
            if tokens:
                return await self._by_token(tokens, methods.keys)
        if methods.users is not None:
            found = password_of(handshake, caller)
            if found is not None:
                return await self._by_password(found, methods.users, may_guess)
        login = _proved_by(caller, methods.settings)
        if login is not None or methods.backend is None:
            return login
        if caller.vouched is not None:
            return _vouched(caller.vouched)
        if not methods.backend.can_ask(handshake, caller):
            return None
        return await methods.backend.login(handshake, caller)

    async def _by_token(self, tokens: list[str], source: KeySource) -> Login:
        for token in tokens:
            with suppress(LoginFailed):
                await source.renew(key_id_of(token))
        return self._proved_in(tokens, source.keys())

    def _proved_in(self, tokens: list[str], keys: VerificationKeys) -> Login:
        """Return the login that the tokens prove; several must agree."""
        logins, failure = [], LoginFailed(Cause.MISSING)
        for token in tokens:
            try:
                logins.append(verify(token, keys, self._methods.settings))
            except LoginFailed as failed:
                failure = failed
        if not logins:
            raise failure
        if any(each.subject != logins[0].subject for each in logins):
            raise LoginFailed(Cause.CONTRADICTION)
        return logins[0]

    async def _by_password(
        self,
        given: PasswordCredentials,
        file: WatchedFile[Users],
        may_guess: Callable[[], bool],
    ) -> Login:
        file.refresh()
        if not may_guess():
            # Also if the password was checked before: otherwise guesses of it would be free.
            raise LoginFailed(Cause.TOO_MANY)
        known = file.value.get(given.subject)
        if known is not None and self._checked.fits(known, given.password):
            return _by_user(known)
        async with self._hashing:
            # Others may have sent wrong passwords meanwhile.
            if not may_guess():
                raise LoginFailed(Cause.TOO_MANY)
            user = await asyncio.to_thread(
                passwords.verify, file.value, given.subject, given.password
            )
        self._checked.add(user, given.password)
        return _by_user(user)


def _proved_by(caller: Caller, settings: LoginSettings) -> Login | None:
    """Return the login that a request proves by itself. Raises `LoginFailed`."""
    for prove in _OF_REQUESTS.values():
        login = prove(caller, settings)
        if login is not None:
            return login
    return None


def _vouched(said: Vouched) -> Login:
    """Return the login that the backend gave to another worker. Raises `NoAnswer` or `SaysNo`."""
    if said.login is not None:
        return said.login
    if said.refusal is not None:
        raise SaysNo(said.refusal)
    raise NoAnswer(said.wait_s)


def _by_user(user: User) -> Login:
    return Login(user.subject, LoginMethod.PASSWORD, frozenset(user.groups))


def _by_header(caller: Caller, settings: LoginSettings) -> Login | None:
    if not settings.login_header or not caller.is_proxied:
        return None
    subjects = _values(caller, settings.login_header)
    if not subjects:
        return None
    # A second one would be the client's own, which the proxy should have removed.
    if len(subjects) > 1 or not is_subject(subjects[0]):
        raise LoginFailed(Cause.SUBJECT)
    listed = _values(caller, settings.login_groups_header) if settings.login_groups_header else []
    if len(listed) > 1:
        raise LoginFailed(Cause.SUBJECT)
    groups = frozenset(each.strip() for value in listed for each in value.split(","))
    return Login(subjects[0], LoginMethod.HEADER, groups - {""})


def _values(caller: Caller, header: str) -> list[str]:
    name = header.lower()
    return [value for key, value in caller.headers.items() if key.lower() == name]


def _by_certificate(caller: Caller, settings: LoginSettings) -> Login | None:
    if not settings.login_certificate or not caller.tls_subject:
        return None
    names = [value for name, value in caller.tls_subject if name == "commonName"]
    if len(names) != 1 or not is_subject(names[0]):
        raise LoginFailed(Cause.SUBJECT)
    groups = [value for name, value in caller.tls_subject if name == "organizationalUnitName"]
    return Login(names[0], LoginMethod.CERTIFICATE, frozenset(groups))


# The proofs that every request of a client repeats, in the order in which they count.
_OF_REQUESTS: Final[Mapping[LoginMethod, Callable[[Caller, LoginSettings], Login | None]]] = {
    LoginMethod.HEADER: _by_header,
    LoginMethod.CERTIFICATE: _by_certificate,
}
