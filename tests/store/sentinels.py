"""Three real Sentinels that watch a primary and a replica, on ports of this machine."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from bench.processes import reserved_port
from holdfast.store.local.embedded import server_binary
from tests.store.cluster import until
from tests.store.servers import ValkeyServer

SERVICE = "shop"
# How long a primary may be silent, so that a failover takes two seconds. Until a test lets a server
# fail, it is longer: no server is to be replaced that has only waited for a processor.
DOWN_AFTER_MS = 500
CALM_MS = 5000
COUNT = 3
_MAJORITY = 2


class Sentinel(ValkeyServer):
    """A Sentinel; it keeps what it knows in a file.

    Args:
        port: Its own.
        primary: The port of the store's primary.
    """

    def __init__(
        self, port: int, primary: int, *, down_after_ms: int, failover_timeout_ms: int = 3000
    ) -> None:
        self.port = port
        self._settings = (
            f"port {port}\nbind 127.0.0.1\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {primary} {_MAJORITY}\n"
            f"sentinel down-after-milliseconds {SERVICE} {down_after_ms}\n"
            f"sentinel failover-timeout {SERVICE} {failover_timeout_ms}\n"
        )
        super().__init__()

    def launch(self, **config: str) -> None:
        settings = self.directory / "sentinel.conf"
        if not settings.exists():
            settings.write_text(f"{self._settings}unixsocket {self.directory}/s\n")
        self.run([server_binary(), str(settings), "--sentinel"])

    @property
    def primary(self) -> int:
        """The port of the primary."""
        return int(self.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1])

    def knows_all(self, replicas: int) -> bool:
        """Return whether it knows the other Sentinels, and so many replicas."""
        known: dict[bytes, bytes] = self.ask("SENTINEL", "MASTER", SERVICE)
        others = int(known[b"num-other-sentinels"])
        return others == COUNT - 1 and int(known[b"num-slaves"]) == replicas


class Watched(ValkeyServer):
    """A server that Sentinels watch."""

    # Called before it is killed or frozen.
    on_failing: Callable[[], None] | None = None

    def freeze(self) -> None:
        self._fail()
        super().freeze()

    def kill(self) -> None:
        self._fail()
        super().kill()

    def _fail(self) -> None:
        if self.on_failing is not None:
            self.on_failing()


class Trio:
    """The Sentinels and the servers."""

    def __init__(self, servers: dict[int, Watched], sentinels: list[Sentinel]) -> None:
        self.servers = servers
        self.sentinels = sentinels
        until(lambda: all(sentinel.knows_all(replicas=1) for sentinel in sentinels))
        self.wait_for_servers(CALM_MS)
        self._hurry_for(lambda: self.wait_for_servers(DOWN_AFTER_MS))

    def wait_for_servers(self, down_after_ms: int) -> None:
        """Let Sentinels wait so long before they replace a server."""
        for each in self.sentinels:
            each.ask("SENTINEL", "SET", SERVICE, "down-after-milliseconds", down_after_ms)

    def _hurry_for(self, hurry: Callable[[], None] | None) -> None:
        for each in self.servers.values():
            each.on_failing = hurry

    def let_end(self) -> None:
        """Whoever ends from now on is replaced by nobody."""
        self._hurry_for(None)

    @property
    def hosts(self) -> str:
        return ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)

    @property
    def url(self) -> str:
        return f"redis+sentinel://{self.hosts}/{SERVICE}"

    @property
    def primary(self) -> Watched:
        return self.servers[self.sentinels[-1].primary]

    def rejoin(self, server: ValkeyServer) -> None:
        """Make it the replica, which Sentinels do after ten seconds."""
        server.follow(self.primary)
        until(lambda: all(sentinel.knows_all(replicas=1) for sentinel in self.sentinels))
        self.wait_for_servers(CALM_MS)


@contextmanager
def trio() -> Iterator[Trio]:
    with ExitStack() as stack:
        settings = {"appendonly": "yes", "appendfsync": "always", "repl-diskless-sync-delay": "0"}
        ports = [stack.enter_context(reserved_port()) for _ in range(2 + COUNT)]
        servers = {
            port: stack.enter_context(Watched(port=str(port), **settings)) for port in ports[:2]
        }
        primary, replica = servers.values()
        replica.follow(primary)
        sentinels = [
            stack.enter_context(Sentinel(port, ports[0], down_after_ms=DOWN_AFTER_MS))
            for port in ports[2:]
        ]
        found = Trio(servers, sentinels)
        stack.callback(found.let_end)
        yield found
