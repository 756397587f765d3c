"""Something for administrative commands to be about, of which all is known beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.bayeux.codec import Json

DAY_MS = 86_400_000


@dataclass
class Session:
    name: str = "client/joe/1"
    subject: str = "joe"
    number: int = 1
    state: str = "ALIVE"
    is_active: bool = True
    is_durable: bool = True
    is_stalled: bool = False
    takes_ptp: bool = True
    created_ms: int = DAY_MS
    expires_ms: int | None = None
    alive_since_ms: int | None = DAY_MS + 1000
    polling_since_ms: int | None = None
    timeout_ms: int = DAY_MS
    max_sessions: int = 10
    qos: str = '{"ack":true}'
    entries: int = 4
    max_entries: int = 10_000
    bytes: int = 300
    channels: Sequence[str] = field(default_factory=lambda: ["/news", "/weather"])
    subscriptions: Sequence[str] = ("client/joe/1 /news",)
    published: int = 1
    subscribed: int = 2
    unsubscribed: int = 1
    acked: int = 3
    exceptions: int = 4
    last_exception: str = "user.update.error"
    queue: list[Json] = field(default_factory=lambda: [{"data": n} for n in range(4)])
    done: list[object] = field(default_factory=list)

    def activate(self, active: bool, who: str) -> None:
        self.is_active = active
        self.done.append(("activate", active, who))

    def set_timeout(self, timeout_ms: int, who: str) -> None:
        self.timeout_ms = timeout_ms

    def refresh(self) -> None:
        self.done.append("refresh")

    def end(self, who: str) -> None:
        self.done.append(("end", who))

    def send_away(self) -> None:
        self.done.append("send away")

    def subscribe(self, channel: str) -> None:
        self.done.append(("subscribe", channel))

    def unsubscribe(self, channel: str) -> None:
        self.done.append(("unsubscribe", channel))

    def clear(self, who: str) -> int:
        return self.remove(len(self.queue), who)

    def remove(self, count: int, who: str) -> int:
        return len(self.take(count, who))

    def peek(self, count: int) -> list[Json]:
        return self.queue[:count]

    def take(self, count: int, who: str) -> list[Json]:
        taken, self.queue = self.queue[:count], self.queue[count:]
        self.entries = len(self.queue)
        return taken

    def forget_exception(self) -> None:
        self.last_exception = ""


@dataclass
class Client:
    created_ms: int = DAY_MS
    sessions: Sequence[str] = field(default_factory=lambda: ["1", "2"])
    max_sessions: int = 10
    acked: int = 5
    waiting: int = 0
    ended_by: str = ""

    def end(self, who: str) -> None:
        self.ended_by = who


@dataclass
class Node:
    id: str = "holdfast"
    version: str = "0.1.0"
    hostname: str = "blue"
    port: int | None = 8080
    runlevel: int = 9
    started_ms: int = DAY_MS
    subjects: Sequence[str] = field(default_factory=lambda: ["joe", "ann"])
    sessions: Sequence[str] = field(default_factory=lambda: ["joe/1"])
    connected: Sequence[str] = field(default_factory=lambda: ["joe/1"])
    channels: Sequence[str] = field(default_factory=lambda: ["/news"])
    subscriptions: Sequence[str] = ("client/joe/1 /news",)
    subscribed: int = 2
    published: int = 7
    acked: int = 8


class Registry:
    def __init__(self) -> None:
        self.node_id = "holdfast"
        self.now_ms = DAY_MS + 90_500
        self.is_available = True
        self.joe = Session()
        self.client_joe = Client()

    def node(self) -> Node:
        return Node()

    def client(self, subject: str) -> Client | None:
        return self.client_joe if subject == "joe" else None

    def session(self, key: str) -> Session | None:
        return self.joe if key == "joe/1" else None
