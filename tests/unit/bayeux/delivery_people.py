"""Receivers of all kinds, and what they know about what they were handed."""

from collections.abc import Sequence
from typing import Any

from tests.unit.bayeux.delivery_model import SESSION_S
from tests.unit.bayeux.delivery_receiver import MOST, Kind, Question
from tests.unit.bayeux.harness import Asked, Client, Json, Server

# What receivers say about messages, and what that means to the server.
WORDS = {
    "OK": "OK",
    "held": "user.update.holdback",
    "dead": "user.update.deadMessage",
    "refused": "user.update.illegalArgument",
    "nonsense": "user.update.internalError",
    "wrong credentials": "user.security.authentication.accessDenied",
    "not now": "communication.noConnection",
}

# A number, a word, and a delay in milliseconds.
Said = tuple[int, str, int | None]


def kind(
    label: str,
    settles: str,
    *,
    name: str | None = None,
    retries: int = 0,
    per_batch: int | None = None,
    most: int = MOST,
    dies: bool = False,
) -> Kind:
    """A receiver with verdicts."""
    delay_ms, response_ms = 1000, 0 if settles == "written" else 2000
    options: Json = {
        "retries": retries,
        "delay": delay_ms,
        "responseTimeout": response_ms,
        "queue": {"maxEntries": most},
        "oneway": settles == "written",
        "onUserException": "dead" if dies else "continue",
    }
    if per_batch is not None:
        options["maxEntries"] = per_batch
    if name is not None:
        options["session"] = {"name": name, "timeout": round(SESSION_S * 1000)}
    return Kind(
        label, settles, options, name, retries, delay_ms, response_ms, per_batch, most, dies
    )


KINDS = [
    Kind("plain", "written"),
    Kind("acks", "batch"),
    kind("acks and verdicts", "batch", retries=1, per_batch=2),
    kind("verdicts alone", "verdict", retries=2, most=3),
    kind("strict", "batch", dies=True),
    kind("joe", "batch", name="joe/1", retries=-1, per_batch=2),
    kind("ann", "verdict", name="ann/1", retries=2),
    kind("eve", "batch", name="eve/1", most=3),
    kind("tom", "written", name="tom/1", retries=1),
    kind("sue", "batch", name="sue/1", retries=1, dies=True),
]


class Person:
    """One receiver: its present client, and what it remembers."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.client: Client | None = None
        # Its connects that were not answered; only the answer to the newest of all is heard.
        self.questions: list[tuple[Question, Asked, bool]] = []
        self.newest: Question | None = None
        self.acks = [0]
        # What this client was handed, by number.
        self.seqs: dict[int, int] = {}

    def shake_hands(self, server: Server, active: bool | None) -> Asked:
        """As a new client, on another machine."""
        ext: Json = {"ack": True} if self.kind.settles == "batch" else {}
        if self.kind.options is not None:
            options = dict(self.kind.options)
            if active is not None:
                options["dispatcherActive"] = active
            ext["delivery"] = options
        self.client = Client(server)
        self.questions = []
        self.acks, self.seqs = [0], {}
        handshake = {
            "channel": "/meta/handshake",
            "version": "1.0",
            "supportedConnectionTypes": ["long-polling"],
            "ext": ext,
        }
        return self.client.send(handshake)

    def move(self, server: Server) -> None:
        """Its client talks to another server now."""
        assert self.client is not None
        self.client.server = server
        self.questions = []

    def ask(self, verdicts: Sequence[Json], pending: Sequence[int], ack: int | None) -> Json:
        """The ext of a connect."""
        ext: Json = {}
        if self.kind.options is not None:
            ext["delivery"] = {"verdicts": list(verdicts), "pending": list(pending)}
        if ack is not None:
            ext["ack"] = ack
        return ext

    def hear(self, answer: Asked, batch: int) -> None:
        """The answer that it waited for has arrived."""
        self.acks.append(batch or self.acks[-1])
        for event in answer.events:
            if "ext" in event:
                self.seqs[event["ext"]["delivery"]["seq"]] = event["data"]


def verdict(seq: int, word: str, delay_ms: int | None) -> Json:
    """What a receiver says about one message."""
    if word == "OK":
        return {"seq": seq, "state": "OK"}
    said: dict[str, Any] = {"seq": seq, "errorCode": WORDS[word], "message": word}
    if word == "nonsense":
        said["errorCode"] = "nonsense"
    if delay_ms is not None:
        said["delay"] = delay_ms
    return said


def meant(said: Sequence[Said]) -> list[tuple[int, str, float | None]]:
    """What the server makes of verdicts."""
    return [
        (seq, WORDS[word], None if delay_ms is None else delay_ms / 1000)
        for seq, word, delay_ms in said
    ]
