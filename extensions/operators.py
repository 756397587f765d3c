"""Operators: who shows a token at handshake may see what the system tells, and command it.

`ext.authentication: {token}` opens `/sys/**` and `/service/admin`, which are closed to everyone
else. Data for the service is `{cmd, value?}`, a command of the administrative grammar.
"""

import hmac
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Protocol

from app.bayeux.advice import reconnect_advice
from app.bayeux.codec import Json
from app.bayeux.commands import Command, Registry, Result, run, understand
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.extension import ServerExtension
from app.bayeux.grammar import ILLEGAL, CommandRefused
from app.bayeux.server import Bayeux
from app.bayeux.services import Call
from app.bayeux.sessions import Session
from app.delivery.notices import WRONG_TOKEN

SERVICE = "/service/admin"
NOT_ALLOWED = "user.security.authorization.notAuthorized"
EXHAUSTED = "resource.exhaust"

# The role that may change something; others may look.
OPERATOR = "operator"
READER = "reader"
_MAX_VALUE = 4096
# Commands of all sessions together that may wait at one time.
_MOST_WAITING = 100

Wait = Callable[[Command, Callable[[float], None]], None]


class Note(Protocol):
    """Adds an entry to the audit."""

    def __call__(
        self,
        who: str,
        action: str,
        target: str,
        *,
        outcome: str = ...,
        detail: Mapping[str, Any] | None = ...,
    ) -> None: ...


class Operators(ServerExtension):
    """Knows operators by their tokens, and does what they say.

    Args:
        role_of: The role that a token gives, in a time that tells nothing about the token.
        warrant_of: What shows, in place of the token, that a session has this role.
        guess: Counts a wrong token of an address; zero, or in how many seconds another may come.
        registry: What commands are about, at this moment.
        note: The audit, which hears of every command that changes something.
        wait: Waits as long as a command says, and calls back with the time.
    """

    owns: ClassVar[frozenset[str]] = frozenset({"authentication"})

    def __init__(
        self,
        bayeux: Bayeux,
        *,
        role_of: Callable[[str], str | None],
        warrant_of: Callable[[str], str],
        guess: Callable[[str, float], float],
        registry: Callable[[], Registry],
        note: Note,
        wait: Wait,
    ) -> None:
        self._bayeux = bayeux
        self._role_of = role_of
        self._warrant_of = warrant_of
        self._guess = guess
        self._registry = registry
        self._note = note
        self._wait = wait
        self._waiting = 0
        bayeux.services.add(SERVICE, self._serve)
        bayeux.rights.role_of = self._warranted

    def negotiate(self, session: Session, handshake: Json, reply: Json, now: float) -> None:
        shown = (handshake.get("ext") or {}).get("authentication")
        if not isinstance(shown, Mapping) or "token" not in shown:
            # Credentials of another kind are for somebody else.
            return
        token = shown["token"]
        role = self._role_of(token) if isinstance(token, str) else None
        if role is not None:
            session.role, session.warrant = role, self._warrant_of(role)
        elif not self._may_be_anothers():
            self._refuse(session.caller.address, now)

    def _may_be_anothers(self) -> bool:
        """Whether somebody else knows tokens: then a wrong one of ours may be a right one there."""
        bayeux = self._bayeux
        return bayeux.rights.judges_handshakes or any(
            "authentication" in each.owns for each in bayeux.extensions if each is not self
        )

    def _refuse(self, address: str, now: float) -> None:
        self._bayeux.notices.tell(WRONG_TOKEN, address or "this machine", "a handshake")
        wait_s = self._guess(address, now)
        if wait_s:
            # Right ones are never kept out by wrong ones: this is about whoever goes on guessing.
            advice = reconnect_advice(self._bayeux.options, "handshake", wait_s)
            raise Refused(BayeuxError.SERVER_BUSY, advice=advice)
        raise Refused(BayeuxError.HANDSHAKE_DENIED)

    def _warranted(self, warrant: str) -> str:
        """The role of a session that comes back from the store, if its token is still the same."""
        for role in (OPERATOR, READER):
            if hmac.compare_digest(self._warrant_of(role).encode(), warrant.encode()):
                return role
        return ""

    def _serve(self, call: Call) -> None:
        session = call.session
        if not session.is_operator:
            raise Refused(BayeuxError.PUBLISH_DENIED, "denied_by_security_policy")
        try:
            command = _understand(call.data)
        except CommandRefused as refused:
            _fail(call, refused)
            return
        # Whoever hears no in the end need not wait for it.
        if command.waits and (session.role == OPERATOR or not command.changes):
            self._serve_later(call, command)
        else:
            self._answer(call, command)

    def _serve_later(self, call: Call, command: Command) -> None:
        if self._waiting >= _MOST_WAITING:
            _fail(call, CommandRefused(EXHAUSTED, f"{_MOST_WAITING} commands wait already"))
            return

        def go_on(now: float) -> None:
            self._waiting -= 1
            self._bayeux.now = now
            # What is taken out of a queue for nobody would be lost.
            if not call.session.has_left:
                self._answer(call, command)

        self._waiting += 1
        self._wait(command, go_on)

    def _answer(self, call: Call, command: Command) -> None:
        try:
            result = self._carry_out(command, call.session)
        except CommandRefused as refused:
            _fail(call, refused)
            return
        keeper = self._bayeux.hub.keeper
        if command.changes and keeper.is_available:
            # The answer promises that the change lasts, and travels with the reply if it may.
            call.is_kept = True
            keeper.after(partial(call.answer, _told(result)))
        else:
            call.answer(_told(result))

    def _carry_out(self, command: Command, session: Session) -> Result:
        role = session.role
        who = f"{role} {session.name}"
        if not command.changes:
            return run(command, self._registry(), who)
        registry = self._registry()
        outcome = "internal.unknown"
        try:
            if role != OPERATOR:
                raise CommandRefused(NOT_ALLOWED, "the operator's token is needed")
            result = run(command, registry, who)
            outcome = "ok"
        except CommandRefused as refused:
            outcome = refused.code
            raise
        finally:
            target = f"{command.target.absolute(registry.node_id)}?{command.name}"
            detail = {"argument": command.argument}
            self._note(who, "command", target, outcome=outcome, detail=detail)
        return result


def _fail(call: Call, refused: CommandRefused) -> None:
    call.fail({"code": refused.code, "message": refused.message})


def _understand(data: object) -> Command:
    given = data if isinstance(data, Mapping) else {}
    text, value = given.get("cmd"), given.get("value")
    if not isinstance(text, str):
        raise CommandRefused(ILLEGAL, "data has the command as cmd")
    if value is not None and (not isinstance(value, str) or len(value) > _MAX_VALUE):
        raise CommandRefused(ILLEGAL, f"value is a text of at most {_MAX_VALUE} characters")
    return understand(text, value)


def _told(result: Result) -> Json:
    told: Json = {"command": result.command, "value": result.value}
    if result.state is not None:
        told |= {"state": result.state, "info": result.info}
    if result.entries is not None:
        told["entries"] = result.entries
    return told
