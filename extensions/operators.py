"""Operators: clients that authenticate with a token may watch the server and send it commands.

`ext.authentication: {token}` at handshake opens `/sys/**` and `/service/admin`, which are closed to
everyone else. Publishes to the service carry `{cmd, value?}`, a command of the administrative
grammar.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import ClassVar, Protocol

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.extending.base import ServerExtension
from holdfast.bayeux.services.commands import Command, CommandReply, understand
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.grammar import ILLEGAL, CommandRefused
from holdfast.bayeux.wire.identity import OPERATOR
from holdfast.delivery.basics.notices import WRONG_TOKEN

SERVICE = "/service/admin"
EXHAUSTED = "resource.exhaust"

_MAX_VALUE = 4096
# Limit on commands that wait at the same time, for all sessions together.
_MOST_WAITING = 100

Wait = Callable[[Command, Callable[[float], None]], None]


class RunCommand(Protocol):
    """Runs a command of this caller. Raises `CommandRefused`."""

    def __call__(self, command: Command, who: str, *, is_allowed: bool) -> CommandReply: ...


class Operators(ServerExtension):
    """Authenticates operators by token and carries out their commands.

    Args:
        role_of: Returns the role of a token, in constant time.
        warrant_of: Returns the warrant of a token, which is stored in its place.
        role_by_warrant: Returns the role of a warrant; an empty string if its token is invalid.
        guess: Counts a wrong token from an address. Returns the seconds to wait, or zero.
        carry_out: Runs a command, and writes one that changes something to the audit log.
        wait: Waits as long as the command asks, then calls back with the time.
    """

    owns: ClassVar[frozenset[str]] = frozenset({"authentication"})

    def __init__(
        self,
        server: ServerApi,
        *,
        role_of: Callable[[str], str | None],
        warrant_of: Callable[[str], str],
        role_by_warrant: Callable[[str], str],
        guess: Callable[[str, float], float],
        carry_out: RunCommand,
        wait: Wait,
    ) -> None:
        self._server = server
        self._role_of = role_of
        self._warrant_of = warrant_of
        self._guess = guess
        self._carry_out = carry_out
        self._wait = wait
        self._waiting = 0
        server.services.add(SERVICE, self._serve)
        server.restore_roles(role_by_warrant)

    def negotiate(self, session: Session, handshake: Json, reply: Json, now: float) -> None:
        shown = (handshake.get("ext") or {}).get("authentication")
        if not isinstance(shown, Mapping) or "token" not in shown:
            # Another extension handles other kinds of credentials.
            return
        token = shown["token"]
        role = self._role_of(token) if isinstance(token, str) else None
        if role is not None:
            session.identity.role, session.identity.warrant = role, self._warrant_of(token)
        elif not self._may_be_anothers():
            self._refuse(session.caller.address, now)

    def _may_be_anothers(self) -> bool:
        """Return whether another extension or the policy may know the token."""
        server = self._server
        return server.rights.judges_handshakes or any(
            "authentication" in each.owns for each in server.extensions if each is not self
        )

    def _refuse(self, address: str, now: float) -> None:
        self._server.notice(WRONG_TOKEN, address or "this machine", "a handshake")
        wait_s = self._guess(address, now)
        if wait_s:
            # Only clients with wrong tokens get here. They never lock out valid ones.
            advice = reconnect_advice(self._server.options, "handshake", wait_s)
            raise Refused(ErrorReply.SERVER_BUSY, advice=advice)
        raise Refused(ErrorReply.HANDSHAKE_DENIED)

    def _serve(self, call: ServiceCall) -> None:
        session = call.session
        if not session.identity.has_role:
            raise Refused(ErrorReply.PUBLISH_DENIED, "denied_by_security_policy")
        try:
            command = _understand(call.data)
        except CommandRefused as refused:
            _fail(call, refused)
            return
        # A command that will be refused is refused at once.
        if command.waits and (session.identity.role == OPERATOR or not command.changes):
            self._serve_later(call, command)
        else:
            self._answer(call, command)

    def _serve_later(self, call: ServiceCall, command: Command) -> None:
        if self._waiting >= _MOST_WAITING:
            _fail(call, CommandRefused(EXHAUSTED, f"{_MOST_WAITING} commands are waiting already"))
            return

        def go_on(now: float) -> None:
            self._waiting -= 1
            # Entries removed from a queue for a client that has left would be lost.
            if not call.session.has_left:
                self._answer(call, command)

        self._waiting += 1
        self._wait(command, go_on)

    def _answer(self, call: ServiceCall, command: Command) -> None:
        try:
            session, is_allowed = call.session, call.session.identity.role == OPERATOR
            who = f"{session.identity.role} {session.name}"
            reply = self._carry_out(command, who, is_allowed=is_allowed)
        except CommandRefused as refused:
            _fail(call, refused)
            return
        if command.changes and self._server.is_store_available:
            # The answer promises that the change is stored. It travels with the reply if possible.
            call.is_kept = True
            self._server.when_kept(lambda _: call.answer(_answer_of(reply)))
        else:
            call.answer(_answer_of(reply))


def _fail(call: ServiceCall, refused: CommandRefused) -> None:
    call.fail({"code": refused.code, "message": refused.message})


def _understand(data: object) -> Command:
    given = data if isinstance(data, Mapping) else {}
    text, value = given.get("cmd"), given.get("value")
    if not isinstance(text, str):
        raise CommandRefused(ILLEGAL, "data must have the command as cmd")
    if value is not None and (not isinstance(value, str) or len(value) > _MAX_VALUE):
        raise CommandRefused(ILLEGAL, f"value must be a string of at most {_MAX_VALUE} characters")
    return understand(text, value)


def _answer_of(reply: CommandReply) -> Json:
    found = {each.name: getattr(reply, each.name) for each in fields(reply)}
    return {name: value for name, value in found.items() if value is not None}
