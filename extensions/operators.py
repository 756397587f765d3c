"""Operators: clients that authenticate with a token may watch the server and send it commands.

`ext.authentication: {token}` at handshake opens `/sys/**` and `/service/admin`, which are closed to
everyone else. Publishes to the service carry `{cmd, value?}`, a command of the administrative
grammar.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial
from typing import ClassVar, Protocol

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.commands.grammar import Command, understand
from holdfast.bayeux.commands.running import CommandReply, Commands
from holdfast.bayeux.extending.base import ServerExtension
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.command_refused import ILLEGAL, NOT_ALLOWED, CommandRefused
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.identity import OPERATOR
from holdfast.delivery.basics.notices import WRONG_TOKEN

SERVICE = "/service/admin"

# There is no login, so a token can only be an operator's.
NO_LOGIN = "no_login"
_MAX_VALUE = 4096


class Change(Protocol):
    """Writes what its block changes to the audit, whatever its outcome."""

    def __call__(
        self, who: str, action: str, target: str, **detail: object
    ) -> AbstractContextManager[object]: ...


class RunAnywhere(Protocol):
    """Runs a command in the shard that has its target."""

    def __call__(self, given: Mapping[str, str], *, changes: bool, who: str, done: "Done") -> None:
        """Call `done` with the answer, or with the refusal.

        Args:
            given: The command, and perhaps its value.
        """
        ...


Done = Callable[[Json | CommandRefused], None]


class Operators(ServerExtension):
    """Authenticates operators by token and carries out their commands.

    Args:
        run_anywhere: Runs commands wherever their targets are, if there are other shards.
        role_of: Returns the role of a token, in constant time.
        warrant_of: Returns the warrant of a token, which is stored in its place.
        guess: Counts a wrong token from an address. Returns the seconds to wait, or zero.
        commands: Runs commands.
        change: Writes a change to the audit.
    """

    owns: ClassVar[frozenset[str]] = frozenset({"authentication"})

    def __init__(
        self,
        server: ServerApi,
        *,
        role_of: Callable[[str], str | None],
        warrant_of: Callable[[str], str],
        guess: Callable[[str, float], float],
        commands: Commands,
        change: Change,
        run_anywhere: "RunAnywhere | None" = None,
    ) -> None:
        self._server = server
        self._role_of = role_of
        self._warrant_of = warrant_of
        self._guess = guess
        self._commands = commands
        self._change = change
        self._run_anywhere = run_anywhere
        server.services.add(SERVICE, self._serve)

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
        raise Refused(ErrorReply.HANDSHAKE_DENIED, NO_LOGIN)

    def _serve(self, call: ServiceCall) -> None:
        session = call.session
        if not session.identity.has_role:
            raise Refused(ErrorReply.PUBLISH_DENIED, "denied_by_security_policy")
        try:
            command = _understand(call.data)
            if self._run_anywhere is not None and _may_run(command, session):
                self._ask(self._run_anywhere, command, call)
                return
            reply = self._run(command, session)
        except CommandRefused as refused:
            call.fail({"code": refused.code, "message": refused.message})
            return
        if command.changes and self._server.is_store_available:
            # The answer promises that the change is stored. It travels with the reply if possible.
            call.is_kept = True
            self._server.when_kept(lambda _: call.answer(_answer_of(reply)))
        else:
            call.answer(_answer_of(reply))

    def _ask(self, run_anywhere: RunAnywhere, command: Command, call: ServiceCall) -> None:
        session = call.session
        who = f"{session.identity.role} {session.name}"
        run_anywhere(_given(call.data), changes=command.changes, who=who, done=partial(_tell, call))

    def _run(self, command: Command, session: Session) -> CommandReply:
        who = f"{session.identity.role} {session.name}"
        if not command.changes:
            return self._commands.run(command, who)
        target = command.absolute(self._server.node.name)
        with self._change(who, "command", target, argument=command.value):
            if not _may_run(command, session):
                raise CommandRefused(NOT_ALLOWED, "this requires the role of an operator")
            reply = self._commands.run(command, who)
        return reply


def _understand(data: object) -> Command:
    given = data if isinstance(data, Mapping) else {}
    text, value = given.get("cmd"), given.get("value")
    if not isinstance(text, str):
        raise CommandRefused(ILLEGAL, "data must have the command as cmd")
    if value is not None and (not isinstance(value, str) or len(value) > _MAX_VALUE):
        raise CommandRefused(ILLEGAL, f"value must be a string of at most {_MAX_VALUE} characters")
    return understand(text, value)


def _may_run(command: Command, session: Session) -> bool:
    return not command.changes or session.identity.role == OPERATOR


def _given(data: object) -> Mapping[str, str]:
    given = data if isinstance(data, Mapping) else {}
    value = given.get("value")
    return {"command": given["cmd"], **({} if value is None else {"value": value})}


def _tell(call: ServiceCall, answer: Json | CommandRefused) -> None:
    if isinstance(answer, CommandRefused):
        call.fail({"code": answer.code, "message": answer.message})
    else:
        call.answer(answer)


def _answer_of(reply: CommandReply) -> Json:
    found = {each.name: getattr(reply, each.name) for each in fields(reply)}
    return {name: value for name, value in found.items() if value is not None}
