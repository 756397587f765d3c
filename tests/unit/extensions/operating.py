"""Operators at a server, and what they leave in its audit."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from holdfast.bayeux.services.command_scope import CommandScope, Process
from holdfast.bayeux.services.commands import Command, carry_out
from holdfast.bayeux.sessions.restoring import restore
from holdfast.bayeux.wire.identity import OPERATOR, READER
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.extensions.operators import Operators
from tests.unit.bayeux.harness import Asked, Client, Json, Server

ROLES = {"open-sesame": OPERATOR, "let-me-see": READER}
MOST_GUESSES = 10


class Audit(list[tuple[str, str, str, str]]):
    """Who did what to whom, and what came of it."""

    def note(
        self,
        who: str,
        action: str,
        target: str,
        *,
        outcome: str = "ok",
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        self.append((who, action, target, outcome))


class Waiting(list[tuple[Command, Callable[[float], None]]]):
    """Commands whose time is not over."""

    def wait(self, command: Command, done: Callable[[float], None]) -> None:
        self.append((command, done))

    def is_over(self, server: Server) -> None:
        """All go on, in the order in which they came."""
        for _, done in self:
            done(server.now)
        self.clear()
        server.turn()


class Guesses(list[float]):
    """When wrong tokens came; only so many may come at one time."""

    def count_one(self, address: str, now: float) -> float:
        self.append(now)
        return 0.0 if len(self) <= MOST_GUESSES else 4.0


def server_of(
    audit: Audit | None = None,
    waiting: Waiting | None = None,
    *,
    before: Server | None = None,
    seal: str = "",
) -> Server:
    """A server with the store of the one `before`, if any; another seal means other tokens."""
    wait = (waiting if waiting is not None else Waiting()).wait
    note = (audit if audit is not None else Audit()).note

    keeper = None if before is None else before.keeper
    server = Server(DeliveryWire, partial(Ack, announces_batch=False), keeper=keeper, after=before)
    scope = CommandScope(server.bayeux.life, Process("1.2", 0), lambda: server.now)
    roles = {f"{role}{seal}": role for role in ROLES.values()}
    operators = Operators(
        server.for_extensions,
        role_of=ROLES.get,
        warrant_of=lambda token: f"{ROLES[token]}{seal}",
        role_by_warrant=lambda warrant: roles.get(warrant, ""),
        guess=Guesses().count_one,
        carry_out=partial(carry_out, scope, note),
        wait=wait,
    )
    server.for_extensions.extend(operators)
    if before is not None:
        for record in list(server.keeper.sessions.values()):
            restore(server.bayeux.life, record, server.keeper.waiting(record.key), server.now)
    return server


def signed_in(server: Server, token: str = "open-sesame", **ext: Any) -> Client:
    return server.connected(ext={"authentication": {"token": token}, **ext})


def command(client: Client, text: object, **fields: Any) -> Asked:
    """Give a command, and let the store answer for what it changed."""
    asked = client.publish("/service/admin", {"cmd": text, **fields})
    client.server.turn()
    return asked


def answer_of(asked: Asked) -> tuple[bool, Json]:
    """Whether the call succeeded, and what it gave."""
    (answer,) = [element for element in asked.elements if "data" in element]
    return answer["successful"], answer["data"]
