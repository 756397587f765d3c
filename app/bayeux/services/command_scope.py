"""What administrative commands act on: a running server and its process."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.state.server_state import ServerState


@dataclass(frozen=True, slots=True)
class Process:
    """The server's process; `started_ms` is milliseconds since 1970."""

    version: str
    started_ms: int
    hostname: str = ""
    # None means that the server does not listen on a port.
    port: int | None = None


@dataclass(frozen=True, slots=True)
class CommandScope:
    """The running server that commands act on."""

    life: SessionLife
    process: Process
    # Returns monotonic seconds, as the server counts them.
    clock: Callable[[], float]

    @property
    def state(self) -> ServerState:
        return self.life.state

    @property
    def now(self) -> float:
        return self.clock()

    @property
    def node(self) -> str:
        return self.state.node.name

    @property
    def now_ms(self) -> int:
        return self.state.node.now_ms()
