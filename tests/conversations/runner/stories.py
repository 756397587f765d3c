"""What a story is made of, once it has been read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.conversations.runner.notation import JSON, Fields, Value

TRANSPORTS = ("long-polling", "websocket", "callback-polling")


@dataclass(frozen=True, slots=True)
class Message:
    """One Bayeux message: `/meta/connect ok {...}` in short, or a JSON object in full."""

    fields: Fields
    channel: str | None = None  # None: in full, nothing is filled in
    verdict: bool | None = None  # True: ok, False: error, None: no reply
    error: Value = None


@dataclass(frozen=True, slots=True)
class Body:
    """A body that need not be an array of messages, encoded as the story says."""

    text: str
    encoding: str = "utf-8"  # or another charset, "hex", "binary"


@dataclass(frozen=True, slots=True)
class RequestLine:
    method: str  # UPGRADE opens a WebSocket
    target: str


@dataclass(frozen=True, slots=True)
class Step:
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Say(Step):
    """`who -> ...`, or `who ~> ...` for messages that are not answered at once."""

    who: str
    is_held: bool
    request: RequestLine | None
    headers: tuple[tuple[str, str], ...]
    content: tuple[Message, ...] | Body


@dataclass(frozen=True, slots=True)
class Hear(Step):
    """`who <- ...`, or `who <~ ...` for replies to messages that were held."""

    who: str
    is_held: bool
    outcome: str  # "", a status as "409", "refused 403", "closed 1007", "frame"
    headers: tuple[tuple[str, str], ...]
    content: tuple[Message, ...] | Body


@dataclass(frozen=True, slots=True)
class Act(Step):
    """A sentence about a client: `alice drops`, `bob shares alice's cookies`."""

    who: str
    verb: str
    what: str


@dataclass(frozen=True, slots=True)
class Pass(Step):
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Stop(Step):
    """`the server stops`, as it does when it is told to."""


@dataclass(frozen=True, slots=True)
class On(Step):
    """Steps for some of the story's transports only."""

    transports: tuple[str, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Story:
    chapter: Path
    line: int
    title: str
    transports: tuple[str, ...]
    settings: dict[str, JSON] = field(default_factory=dict)
    pins: frozenset[str] = frozenset()
    steps: tuple[Step, ...] = ()

    @property
    def ends_the_server(self) -> bool:
        return any(isinstance(step, Stop) for step in self.steps)

    def steps_on(self, transport: str) -> Iterator[Step]:
        for step in self.steps:
            if not isinstance(step, On):
                yield step
            elif transport in step.transports:
                yield from step.steps
