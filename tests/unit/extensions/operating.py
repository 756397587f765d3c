"""Operators at a server, and what they leave in its audit."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from holdfast.bayeux.commands.running import Commands
from holdfast.bayeux.sessions.restoring import restore
from holdfast.bayeux.wire.command_refused import CommandRefused
from holdfast.bayeux.wire.identity import OPERATOR, READER
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.extensions.operators import Operators
from tests.unit.bayeux.harness import Asked, Client, Json, Server

ROLES = {"open-sesame": OPERATOR, "let-me-see": READER}
MOST_GUESSES = 10


class Audit(list[tuple[str, str, str, str]]):
    """Who did what to whom, and what came of it."""

    @contextmanager
    def change(self, who: str, action: str, target: str, **detail: object) -> Iterator[None]:
        outcome = "ok"
        try:
            yield
        except CommandRefused as refused:
            outcome = refused.code
            raise
        finally:
            self.append((who, action, target, outcome))


class Guesses(list[float]):
    """When wrong tokens came; only so many may come at one time."""

    def count_one(self, address: str, now: float) -> float:
        self.append(now)
        return 0.0 if len(self) <= MOST_GUESSES else 4.0


def server_of(
    audit: Audit | None = None,
    *,
    before: Server | None = None,
    seal: str = "",
) -> Server:
    """A server with the store of the one `before`, if any; another seal means other tokens."""
    keeper = None if before is None else before.keeper
    server = Server(DeliveryWire, partial(Ack, announces_batch=False), keeper=keeper, after=before)
    server.roles |= {f"{role}{seal}": role for role in ROLES.values()}
    operators = Operators(
        server.for_extensions,
        role_of=ROLES.get,
        warrant_of=lambda token: f"{ROLES[token]}{seal}",
        guess=Guesses().count_one,
        commands=Commands(server.bayeux.life, lambda: server.now),
        change=(Audit() if audit is None else audit).change,
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
