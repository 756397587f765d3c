"""The extension by which clients log in: it proves, renews and ends their logins."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, ClassVar, Final, Protocol

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.limits.buckets import Buckets, Rate
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused, refused_by_backend
from holdfast.bayeux.wire.identity import Identity
from holdfast.bayeux.wire.login import Login, LoginMethod, Vouched
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.basics.notices import LOGIN_ENDED, LOGIN_FAILED
from holdfast.delivery.messages.batch import Batch
from holdfast.login.authenticator import ANONYMOUS, Authenticator
from holdfast.login.check_times import CheckTimes
from holdfast.login.credentials import shows_none, token_of
from holdfast.login.failures import Cause, LoginFailed, NoAnswer, SaysNo
from holdfast.login.proofs import Proofs, forget_revoked
from holdfast.login.request_grants import RequestGrants
from holdfast.login.rights_file import LOGIN, RightsFile
from holdfast.login.rules import RuleGrants, Rules
from holdfast.login.tickets import LONGEST_S, Ticket, Tickets
from holdfast.login.tokens import key_id_of
from holdfast.login.watched_file import WatchedFile

_HANDSHAKE = "/meta/handshake"
# What refusals say to clients that show no credentials.
NO_CREDENTIALS: Final = "no_credentials"
# Beyond these guesses, passwords from an address are refused without being checked.
_GUESSES = Rate(burst=10, per_s=0.2)
# Tokens cannot be guessed: those that have expired must not keep anybody from using a password.
_OF_GUESSES = frozenset({Cause.PASSWORD, Cause.TOO_MANY})
# A failure is answered after this time or up to twice as long, which does not reveal its cause.
_FAILURE_S = 0.3
# How often ended logins and changes of the file are looked for. Readers learn of them within a
# second.
_LOOK_S = 0.5
# After what time the backend is asked again about a login if it has not answered.
_REFRESH_S: Final = 5.0
# After what time a client should try keys again that are being fetched.
_KEYS_S = 1.0
# Sessions that are reauthorized before the event loop serves others.
_AT_ONCE = 200


GrantsOf = Callable[[Rules, Login], RuleGrants]
Decide = Callable[[Caller, RequestGrants, Sequence[str]], Awaitable[None]]


class Refreshing(Protocol):
    """Asks the backend again about logins that it gave, before they end."""

    def lead_s(self, login: Login, warning_s: float) -> float:
        """Return how long before the end of a login to ask; 0.0 if it is not the backend's."""
        ...

    def begin(self, session: Session, done: Callable[[Login | str | None], None]) -> None:
        """Ask. `done` gets the new login, or why there is none, or None if there was no answer."""
        ...


class Logins(ServerExtension):
    """Makes each client log in, renews its login, and ends it when it expires.

    Args:
        of_administration: How requests to the administration prove a login.
        rights: The file of rights, if there is one.
        otherwise: The rights that apply without a file.
        is_operators: Returns whether a token is an operator's, which is no login.
        warning_s: How long before its end a client is warned.
        grants_of: Makes the rights of a login from the rules in force.
        refreshing: Asks the backend about logins that are about to end.
        decide: Asks the backend what a request without a session may read.
    """

    owns: ClassVar[frozenset[str]] = frozenset({"authentication"})

    def __init__(
        self,
        server: ServerApi,
        authenticator: Authenticator,
        *,
        of_administration: Authenticator,
        rights: WatchedFile[RightsFile] | None,
        otherwise: RightsFile,
        is_operators: Callable[[str], bool],
        warning_s: float,
        key: bytes,
        grants_of: GrantsOf = RuleGrants,
        refreshing: "Refreshing | None" = None,
        decide: Decide | None = None,
    ) -> None:
        self._server = server
        self._file = rights
        self._otherwise = otherwise
        self._rules = Rules(self.rights.rules)
        self._authenticator = authenticator
        self._of_administration = of_administration
        self._is_operators = is_operators
        self._warning_s, self._grants_of = warning_s, grants_of
        self._refreshing, self._decide = refreshing, decide
        self._tickets = Tickets(key)
        self._guesses = Buckets(_GUESSES.part(server.shards))
        self._check_times = CheckTimes()
        self._proofs = Proofs()
        self._of_session = _LoginOfSession(self)
        self._fetching: asyncio.Task[None] | None = None
        server.require_login(self.still_proves)
        # A message may only renew the login, which `incoming` does.
        server.services.add(LOGIN, ignore)

    @property
    def rights(self) -> RightsFile:
        """The rights now in force."""
        return self._otherwise if self._file is None else self._file.value

    async def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension:
        if self._is_of_operator(handshake):
            login = ANONYMOUS
        else:
            login = await self._proved(handshake, session.caller, now)
        self._server.count_login(login.method)
        self._set(session, login)
        shown = self._authenticator.shown_by(session.caller)
        if shown:
            self._proofs.add(session.identity, shown, login)
        if login is not ANONYMOUS:
            session.go_by(f"{login.subject}/-{session.number}")
            reply.setdefault("ext", {})["authentication"] = _outline(login)
        return self._of_session

    def named_by(self, handshake: Json, caller: Caller) -> str | None:
        """Return the subject that the credentials of a handshake name, unproved."""
        if self._is_of_operator(handshake):
            return None
        return self._authenticator.named_by(handshake, caller)

    async def operator(self, caller: Caller, now: float) -> tuple[str, str] | None:
        """Return the role and the subject of a request to the administration.

        The role may be empty; None if the request proves no login.
        """
        try:
            login = await self._of_administration.authenticate(
                {}, caller, lambda: self._may_guess(caller.network, now)
            )
            self._check_revoked(login)
        except LoginFailed as failed:
            if failed.cause is not Cause.MISSING:
                await self._refused(failed, caller, now)
            return None
        return self.rights.roles.role_of(login), login.subject

    async def grants_of(self, caller: Caller, now: float) -> RequestGrants:
        """Return the rights of a request that has no session. Raises `Refused`."""
        login = await self._proved({}, caller, now)
        self._server.count_login(login.method)
        return RequestGrants(lambda: self.rights, login, self._grants_of(self._rules, login))

    def asks_about(self, handshake: Json, caller: Caller) -> bool:
        """Return whether the backend is asked about the client of a handshake."""
        if self._is_of_operator(handshake):
            return False
        return self._authenticator.asks_about(handshake, caller)

    async def decide(self, caller: Caller, grants: RequestGrants, channels: Sequence[str]) -> None:
        """Have the backend asked what a request may read, where rules say so."""
        if self._decide is not None:
            await self._decide(caller, grants, channels)

    async def vouched(self, handshake: Json, caller: Caller) -> Vouched:
        """Return what the backend says about the client of a handshake."""
        try:
            return Vouched(await self._authenticator.by_backend(handshake, caller))
        except NoAnswer as none:
            return Vouched(wait_s=none.wait_s)
        except SaysNo as no:
            return Vouched(refusal=str(no))

    async def _proved(self, handshake: Json, caller: Caller, now: float) -> Login:
        """Return the login that a client proves. Raises `Refused`."""
        try:
            login = await self._authenticator.authenticate(
                handshake, caller, lambda: self._may_guess(caller.network, now)
            )
            self._check_revoked(login)
        except LoginFailed as failed:
            refused = await self._refused(failed, caller, now)
            if failed.cause is Cause.MISSING and shows_none(handshake, caller):
                # The client knows that, and what else it could show stays unsaid.
                refused = Refused(ErrorReply.HANDSHAKE_DENIED, NO_CREDENTIALS)
            raise refused from None
        except SaysNo as no:
            await self._refused(LoginFailed(Cause.BACKEND, str(no)), caller, now)
            raise refused_by_backend(ErrorReply.HANDSHAKE_DENIED, str(no)) from None
        except NoAnswer as none:
            advice = reconnect_advice(self._server.options, "handshake", none.wait_s)
            raise Refused(ErrorReply.BACKEND_UNAVAILABLE, advice=advice) from None
        return login

    def ticket_of(self, grants: RequestGrants, channels: Sequence[str]) -> tuple[str, int]:
        """Return a ticket that lets a URL read channels, and when it ends. Raises `Refused`."""
        ends_s = int(min(time.time() + LONGEST_S, grants.ends_s))
        return self._tickets.signed(Ticket(grants.login, channels, ends_s)), ends_s

    def grants_by(self, ticket: str) -> RequestGrants:
        """Return the rights that a ticket gives. Raises `Refused`."""
        login, channels, ends_s = self._tickets.read(ticket)
        return RequestGrants(
            lambda: self.rights,
            login,
            self._grants_of(self._rules, login),
            channels=channels,
            ends_s=ends_s,
        )

    def _may_guess(self, network: str, now: float) -> bool:
        return not network or self._guesses.wait_s(network, now) == 0.0

    def resume(self, session: Session, now: float) -> SessionExtension:
        login = session.identity.login
        if login is None:
            # Stored before the server required a login: its client must log in now.
            login = Login(session.subject, LoginMethod.ANONYMOUS, expires_s=0.0)
        self._set(session, login)
        if self.rights.revoked.includes(login):
            # The file changed while the server was down.
            self._check_times.watch(session, 0.0)
        else:
            self.watch(session)
        self._server.reauthorize(session)
        return self._of_session

    def still_proves(self, identity: Identity, caller: Caller) -> bool:
        """Return whether a later request may come from the session's client.

        Its credentials, if it has any, must be known from earlier requests or prove the same
        subject.
        """
        login = identity.login
        if login is None or not self._authenticator.still_names(login, caller):
            return False
        if login.expires_s <= time.time() or self.rights.revoked.includes(login):
            # While the server was down: nothing has looked at it since then.
            return False
        shown = self._authenticator.shown_by(caller)
        # A client with a token of the administration has no other login.
        if shown and not identity.warrant and not self._proofs.includes(identity, shown):
            try:
                proved = self._authenticator.check_shown(login, caller)
                self._check_revoked(proved)
            except LoginFailed as failed:
                self._note(failed, caller)
                return False
            self._proofs.add(identity, shown, proved)
        identity.proved_by = caller
        return True

    def renew(self, session: Session, message: Json) -> None:
        """Renew the login of a session by a message's token. Raises `Refused`."""
        login = session.identity.login
        if login is None:
            return
        try:
            renewed = self._authenticator.renewed(message, login)
            if renewed is None:
                return
            self._check_revoked(renewed)
        except LoginFailed as failed:
            raise self._not_renewed(failed, session, message) from None
        self._server.count_login(LoginMethod.TOKEN)
        self._set(session, renewed)
        self.watch(session)
        # Also if its rights are the same: its record is stored with that.
        self._server.reauthorize(session)

    async def run(self) -> None:
        """End expired logins, and follow changes of the file, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            self.end_due(time.time())
            if self._file is not None and self._file.refresh():
                await self._review()

    def end_due(self, now_s: float) -> None:
        """Warn clients whose login ends soon; log out those whose login has ended or is revoked."""
        for session in self._check_times.due(now_s):
            login = session.identity.login
            if login is None:
                continue
            left_s = login.expires_s - now_s
            if self.rights.revoked.includes(login):
                self._log_out(session, "it was revoked")
            elif left_s <= 0.0:
                self._log_out(session, "it has expired")
            elif left_s <= self._lead_s(login):
                self._refresh(session, login)
            elif left_s <= self._warning_s:
                data = {"expiresIn": round(left_s * 1000)}
                self._server.deliver_event(session, {"channel": LOGIN, "data": data})
                self._check_times.watch(session, login.expires_s)
            else:
                self.watch(session)

    def watch(self, session: Session) -> None:
        """Schedule a check of the session before its login ends."""
        login = session.identity.login
        if login is not None and login.expires_s < inf:
            before_s = self._lead_s(login) or self._warning_s
            self._check_times.watch(session, login.expires_s - before_s)

    def _lead_s(self, login: Login) -> float:
        """Return how long before its end the backend is asked about a login; 0.0 if never."""
        if self._refreshing is None:
            return 0.0
        return self._refreshing.lead_s(login, self._warning_s)

    def _refresh(self, session: Session, login: Login) -> None:
        """Ask the backend whether a login goes on."""
        if self._refreshing is not None:
            again_s = min(time.time() + _REFRESH_S, login.expires_s)
            self._check_times.watch(session, again_s)
            self._refreshing.begin(session, partial(self._refreshed, session, login))

    def _refreshed(self, session: Session, former: Login, answer: Login | str | None) -> None:
        """Let a login go on, or end it. Without an answer, it is asked again until it ends."""
        if session.identity.login is not former or session.is_gone or answer is None:
            return
        if isinstance(answer, str):
            self._log_out(session, answer)
        elif answer.subject != former.subject or self.rights.revoked.includes(answer):
            self._log_out(session, "the backend gave it to another subject, or it was revoked")
        else:
            self._server.count_login(LoginMethod.BACKEND)
            self._set(session, answer)
            self.watch(session)
            self._server.reauthorize(session)

    def _log_out(self, session: Session, why: str) -> None:
        if not session.has_left:
            self._server.notice(LOGIN_ENDED, session.key, why)
            self._server.log_out(session)

    async def _review(self) -> None:
        """Reauthorize all sessions, because the file has changed."""
        self._rules.in_force = self.rights.rules
        revoked = self.rights.revoked
        for place, session in enumerate(list(self._server.sessions)):
            if session.identity.login is not None and revoked.includes(session.identity.login):
                self._log_out(session, "it was revoked")
            forget_revoked(session.identity, revoked)
            self._set_role(session.identity)
            self._server.reauthorize(session)
            if place % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)

    def _set(self, session: Session, login: Login) -> None:
        session.identity.login = login
        session.identity.grants = self._grants_of(self._rules, login)
        self._set_role(session.identity)

    def _set_role(self, identity: Identity) -> None:
        """Give the role that the login has; a role by a token of the administration stays."""
        if identity.login is not None and not identity.warrant:
            identity.role = self.rights.roles.role_of(identity.login)

    def _check_revoked(self, login: Login) -> None:
        if self.rights.revoked.includes(login):
            raise LoginFailed(Cause.REVOKED)

    def _is_of_operator(self, handshake: Json) -> bool:
        try:
            return self._is_operators(token_of(handshake))
        except LoginFailed:
            return False

    async def _refused(self, failed: LoginFailed, caller: Caller, now: float) -> Refused:
        """Count the failure, and return the refusal after a pause."""
        self._note(failed, caller)
        is_limited = caller.network and failed.cause in _OF_GUESSES
        wait_s = self._guesses.take(caller.network, now) if is_limited else 0.0
        await asyncio.sleep(_FAILURE_S * (1 + random.random()))  # noqa: S311 - no secret
        if wait_s:
            advice = reconnect_advice(self._server.options, "handshake", wait_s)
            return Refused(ErrorReply.BUDGET_EXCEEDED, "logins", advice=advice)
        return Refused(ErrorReply.HANDSHAKE_DENIED)

    def _not_renewed(self, failed: LoginFailed, session: Session, message: Json) -> Refused:
        self._note(failed, session.caller)
        if failed.cause in (Cause.UNKNOWN_KEY, Cause.NO_KEYS):
            # The provider may have new keys: they are there when the client tries again.
            self._fetch_keys(token_of(message))
            advice = reconnect_advice(self._server.options, "retry", _KEYS_S)
            return Refused(ErrorReply.SERVER_BUSY, advice=advice)
        return Refused(ErrorReply.LOGIN_DENIED)

    def _note(self, failed: LoginFailed, caller: Caller) -> None:
        self._server.count_login(None)
        self._server.notice(LOGIN_FAILED, caller.address or "this machine", str(failed))

    def _fetch_keys(self, token: str) -> None:
        """Fetch newer keys; one attempt at a time."""
        if self._fetching is None or self._fetching.done():
            work = self._authenticator.renew_keys(key_id_of(token))
            self._fetching = asyncio.get_running_loop().create_task(work)


class _LoginOfSession(SessionExtension):
    """Stateless: the login is the session's."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        if "authentication" in (message.get("ext") or {}):
            self._logins.renew(session, message)
        return True

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        # Only now is it known which session the client has: perhaps one that it took over.
        if reply["channel"] == _HANDSHAKE:
            self._logins.watch(session)


def _outline(login: Login) -> Json:
    """Return what the client learns about its login."""
    outline: Json = {"subject": login.subject, "method": login.method.value}
    if login.expires_s < inf:
        outline["expires"] = round(login.expires_s * 1000)
    return outline
