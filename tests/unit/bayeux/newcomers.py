"""What handshakes lead to, and a server that has messages for each new session."""

from typing import Any

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from tests.unit.bayeux.harness import Asked, Json, Server


def sessions(server: Server) -> list[Session]:
    return list(server.bayeux.state.sessions)


def assert_turned_away(asked: Asked, interval: int, error: str = "503::server_busy") -> None:
    assert asked.reply["error"] == error
    assert asked.reply["advice"] == {
        "reconnect": "handshake",
        "interval": interval,
        "timeout": 30000,
    }


class Greeter(ServerExtension):
    """Delivers two messages to every new session."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        for number in (1, 2):
            self._server.for_extensions.deliver_event(
                session, {"channel": "/hello", "data": number}
            )
        return None


def greeting(**options: Any) -> Server:
    server = Server(**options)
    server.bayeux.state.installed.extend(Greeter(server))
    return server
