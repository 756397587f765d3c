"""What an operator does to a server without a network."""

from typing import Any

from holdfast.bayeux.commands.grammar import understand
from holdfast.bayeux.commands.running import CommandReply, Commands
from holdfast.bayeux.sessions.replaying import Replaying
from tests.unit.bayeux.harness import Client, Server


def receiver(server: Server, session: str | None = "joe/1", **options: Any) -> Client:
    """A session with an empty queue, subscribed to /a."""
    if session is not None:
        options["session"] = session
    client = server.client(ext={"ack": True, "delivery": options or True})
    connect(client)
    client.subscribe("/a")
    server.turn()
    return client


def connect(client: Client) -> list[Any]:
    batch = client.session.queue.batch
    asked = client.connect(advice={"timeout": 0}, ext={"ack": batch})
    # A reply with a redelivery is sent when the store knows of it.
    client.server.turn()
    return asked.data


def commands_of(server: Server) -> Commands:
    return Commands(server.bayeux.life, lambda: server.now)


def replaying_of(server: Server) -> Replaying:
    state = server.bayeux.state
    return Replaying(
        state.hub,
        state.sessions,
        work=state.work,
        node=state.node,
        notices=state.notices,
        clock=lambda: server.now,
    )


def ask(server: Server, text: str, value: str | None = None) -> CommandReply:
    return commands_of(server).run(understand(text, value), "operator")


def value_of(server: Server, text: str) -> str:
    return ask(server, text).value


def publish(server: Server, *numbers: object) -> None:
    for number in numbers:
        server.for_extensions.publish("/a", number)
    # What a named session gets is stored first.
    server.turn()


def letters(server: Server) -> list[Any]:
    return [letter.envelope()["content"] for letter in server.keeper.letters]
