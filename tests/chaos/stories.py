"""Histories written by hand: each call is one operation, and a millisecond passes."""

from collections.abc import Callable
from typing import Any

from tests.chaos.checker import Result, check
from tests.chaos.history import Operation, Phase, What

MS = 1_000_000
CHANNEL = "/chaos"
JOE = "joe/1"
LAG = "promote replica of dead primary, kill server"


class Story:
    """One subscriber and one channel unless said otherwise; tags are publisher-serial."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.now_ns = 0
        self._seq = 0

    def result(self) -> Result:
        return check(self.operations)

    def add(
        self,
        what: What,
        process: str = JOE,
        outcome: Phase = Phase.OK,
        lasts_ms: int = 1,
        **fields: Any,
    ) -> Operation:
        begun_ns = self.now_ns
        self.now_ns += lasts_ms * MS
        operation = Operation(process, what, begun_ns, begun_ns, self.now_ns, outcome, fields)
        self.operations.append(operation)
        return operation

    def pause(self, ms: int) -> None:
        self.now_ns += ms * MS

    def stall(self, ms: int) -> None:
        """The machine stalls."""
        self.pause(ms)
        self.add(What.LATE, "arena", lasts_ms=0, ns=ms * MS)

    def subscribe(self, subscriber: str = JOE, channel: str = CHANNEL, **fields: Any) -> None:
        self.add(What.SUBSCRIBE, subscriber, subscriber=subscriber, channel=channel, **fields)

    def publish(self, *tags: str, outcome: Phase = Phase.OK, **fields: Any) -> None:
        for tag in tags:
            publisher, _, serial = tag.partition("-")
            known = {"tag": tag, "serial": int(serial), "channel": CHANNEL, "sha": f"sha of {tag}"}
            self.add(What.PUBLISH, publisher, outcome, **{**known, **fields})

    def address(self, *tags: str, to: tuple[str, ...], **fields: Any) -> None:
        """Publish to these sessions and subjects; all take it unless `taken` says otherwise."""
        self.publish(*tags, destinations=to, **{"taken": to, **fields})

    def go_on(self, subscriber: str, **fields: Any) -> None:
        """Subscribe again, from a cursor on."""
        self.add(What.GO_ON, subscriber, subscriber=subscriber, channel=CHANNEL, **fields)

    def end(self, subscriber: str = JOE) -> None:
        self.add(What.END, subscriber, subscriber=subscriber)

    def answer(self, *tags: str, subscriber: str = JOE, **fields: Any) -> None:
        """One response, and what it brought."""
        asked_ns = self.now_ns
        self.pause(1)
        for tag in tags:
            self._seq += 1
            known = {
                "subscriber": subscriber,
                "tag": tag,
                "channel": CHANNEL,
                "sha": f"sha of {tag}",
                "seq": self._seq,
                "redelivered": 0,
                "asked": asked_ns,
            }
            self.add(What.DELIVER, subscriber, lasts_ms=0, **{**known, **fields})

    def settle(
        self,
        *tags: str,
        code: str = "",
        outcome: Phase = Phase.OK,
        subscriber: str = JOE,
        **fields: Any,
    ) -> None:
        """The receiver's verdict on these entries: accepted, unless there is a code."""
        entries = [{"tag": tag, "code": code, "seq": self._seq, **fields} for tag in tags]
        self.add(What.SETTLE, subscriber, outcome, subscriber=subscriber, entries=entries)

    def get(self, *tags: str, **fields: Any) -> None:
        """Delivered and accepted."""
        self.answer(*tags, **fields)
        known = fields.keys() & {"generation", "subscriber"}
        self.settle(*tags, **{key: fields[key] for key in known})

    def fault(self, kind: str, lasts_ms: int = 500, **fields: Any) -> None:
        self.add(What.FAULT, "nemesis", lasts_ms=lasts_ms, kind=kind, **fields)

    def publish_while_a_replica_lags(self, *tags: str, may_lose: bool) -> None:
        """Then it takes over, and the server dies."""
        self.fault(LAG, may_lose=may_lose)
        ended_ns, self.now_ns = self.now_ns, self.operations[-1].begun_ns
        self.publish(*tags)
        self.now_ns = ended_ns

    def answer_while_a_replica_takes_over(self, *tags: str) -> None:
        """The primary is frozen, and the server lives."""
        self.fault("promote replica of frozen primary")
        ended_ns, self.now_ns = self.now_ns, self.operations[-1].begun_ns + 100 * MS
        self.answer(*tags)
        self.now_ns = ended_ns

    def hold(self, subscriber: str = JOE, **fields: Any) -> None:
        self.add(What.HOLD, "operator", subscriber=subscriber, **fields)

    def resume(self, subscriber: str = JOE) -> None:
        self.add(What.RESUME, "operator", subscriber=subscriber)

    def scan(
        self, *, waiting: tuple[str, ...] = (), dead: tuple[Any, ...] = (), **fields: Any
    ) -> None:
        """What is kept for the subscriber; the dead are tags or records."""
        letters = [
            {"subscriber": JOE, "letter": f"{n}", "code": "user.update.error", "attempts": 99}
            | (each if isinstance(each, dict) else {"tag": each})
            for n, each in enumerate(dead)
        ]
        pending = {JOE: [{"tag": tag, "attempts": 99} for tag in waiting]}
        self.add(What.SCAN, "store", **{"pending": pending, "dead": letters, **fields})

    def connect(self, batch: int, client: str = "1") -> None:
        self.add(What.CONNECT, client=client, batch=batch)

    def lose(self, lasts_ms: int = 3000, **fields: Any) -> None:
        """A connect whose answer never came."""
        self.add(What.CONNECT, outcome=Phase.INFO, lasts_ms=lasts_ms, client="1", **fields)

    def lose_in(self, fault: str) -> None:
        """The same, with other operations meanwhile."""
        self.fault(fault, lasts_ms=3000)
        self.now_ns = self.operations[-1].begun_ns
        self.lose()

    def ask(
        self, *tags: str, mode: str = "first", outcome: Phase = Phase.OK, by: str = "amy/1"
    ) -> None:
        for tag in tags:
            self.add(What.REQUEST, by, outcome, tag=tag, mode=mode)

    def tell(self, tag: str, id: str, *, by: str = "", end: str = "", replies: int = 0) -> None:
        """An event says what has become of a request: a reply of somebody, or its end."""
        fields: dict[str, Any] = {"tag": tag, "id": id, "by": by, "end": end, "replies": replies}
        self.add(What.OUTCOME, "amy/1", lasts_ms=0, **fields)

    def count(self, **counters: int) -> None:
        self.add(What.COUNTERS, "server", Phase.OK, 1, **counters)


Tale = Callable[[Story], None]


def story_of(tell: Tale) -> Story:
    """A story that begins with a subscribe."""
    story = Story()
    story.subscribe()
    tell(story)
    return story
