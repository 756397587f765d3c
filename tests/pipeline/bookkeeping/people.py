"""Sessions that write into the ledger what they get, and what they say to it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.integration.talker import Json, Talker
from tests.pipeline.bookkeeping.ledger import Copy, End, Ledger, Span, now_us, until_now

HOLDBACK = "user.update.holdback"
STUMBLE = "communication.noConnection"
# How soon a message comes again that its receiver could not take, in ms.
_SOON_MS = 100


class Verdict(NamedTuple):
    """What a receiver says of one message: OK, a code, or nothing, so that the ack counts."""

    code: str = ""
    text: str = ""
    is_explicit: bool = True


class Work(NamedTuple):
    """A copy that was handed over, and the verdict on it."""

    copy: Copy
    seq: int
    verdict: Verdict

    @property
    def stops(self) -> bool:
        """Whether what was handed over behind it returns, too."""
        return self.verdict.code in (HOLDBACK, STUMBLE)


class Person:
    """A session, with the verdicts that its next connect brings.

    Args:
        name: Of a named session; others get one from the server.
        judge: Says what the session thinks of a copy.
    """

    def __init__(
        self,
        ledger: Ledger,
        judge: Callable[["Person", Copy], Verdict],
        channels: tuple[str, ...] = (),
        *,
        name: str | None = None,
        **options: Any,
    ) -> None:
        self.is_named = self.is_stored = name is not None
        self.is_oneway = bool(options.get("oneway"))
        self.is_held = False
        # Whether a kill of the server has ended its connection, and it has not come back.
        self.is_cut_off = False
        self.name = name or ""
        self.ret = ""
        self.channels = channels
        self.work: list[Work] = []
        # What was acked just before a kill; if the ack was lost, the next one counts.
        self.to_confirm: list[Copy] = []
        self._ledger = ledger
        self._judge = judge
        self._options = {"retries": -1 if name else 0, **options}
        self._talker: Talker | None = None
        self._batch = 0

    @property
    def capacity(self) -> int:
        most: int = self._options.get("queue", {}).get("maxEntries", 10_000)
        return most

    @property
    def is_there(self) -> bool:
        return self._talker is not None

    @property
    def has_room(self) -> bool:
        return len(self._ledger.open(self.name)) < self.capacity

    def begin(self, url: str) -> None:
        """Handshake; another client of the same name is told to leave."""
        self._talker = talker = Talker(url)
        self._batch, self.work = 0, []
        delivery = {**self._options, **({"session": self.name} if self.is_named else {})}
        ext = {"ack": True, "delivery": delivery, "request": self.ret or True}
        reply = talker.handshake(version="1.0", ext=ext)
        self.name = reply["ext"]["delivery"]["session"]["name"].removeprefix("client/")
        self.ret = reply["ext"]["ret"]
        if not reply["ext"]["delivery"].get("resumed"):
            for channel in self.channels:
                self.say("/meta/subscribe", subscription=channel)

    def go_to(self, url: str) -> None:
        """Go on with a server that follows a killed one."""
        if self._talker is not None:
            self._talker.go_to(url)

    def forget(self) -> None:
        """Forget the session."""
        self._talker, self.work = None, []

    def say(self, channel: str, **fields: Any) -> Json:
        """Send a message; the reply to it."""
        assert self._talker is not None
        replies = self._talker.send(channel, **fields)
        return next(each for each in replies if each["channel"] == channel and "data" not in each)

    def go_on(self, timeout_ms: int = 0) -> list[Json]:
        """Connect with the verdicts on the last batch, and take the next one."""
        assert self._talker is not None
        verdicts, since_us = [*map(_said, filter(_is_said, self.work))], now_us()
        ext: Json = {"ack": self._batch}
        if verdicts and not self.is_oneway:
            ext["delivery"] = {"verdicts": verdicts}
        found = self._talker.connect(advice={"timeout": timeout_ms}, ext=ext)
        (reply,) = [each for each in found if each["channel"] == "/meta/connect"]
        assert reply["successful"], reply
        self._batch, self.is_cut_off = reply["ext"]["ack"], False
        for copy in self.to_confirm:
            copy.confirm(until_now(since_us))
        self.to_confirm = []
        self._settle(since_us)
        events = [each for each in found if "data" in each]
        for event in events:
            self._take(event, since_us)
        return events

    def leave(self, **delivery: Any) -> None:
        """Disconnect; verdicts that were not given are forgotten."""
        ext = {"delivery": delivery} if delivery else {}
        reply = self.say("/meta/disconnect", ext=ext)
        assert reply["successful"], reply
        self.forget()

    def _settle(self, since_us: int) -> None:
        span, is_behind = until_now(since_us), False
        for copy, seq, verdict in self.work:
            is_behind = is_behind or Work(copy, seq, verdict).stops
            if verdict.code:
                copy.refuse(verdict.code, verdict.text, span)
                self._refused(copy, verdict)
            elif not is_behind or verdict.is_explicit:
                copy.settle(End.ACKED, span)
        self.work = []

    def _refused(self, copy: Copy, verdict: Verdict) -> None:
        span = copy.stay.refusals[-1].span
        if verdict.code == HOLDBACK:
            self.is_held = True
        elif verdict.code != STUMBLE:
            self.give_up(copy, verdict, span)

    def give_up(self, copy: Copy, verdict: Verdict, span: Span) -> None:
        """What becomes of a copy that is refused for good."""
        copy.die(verdict.code, verdict.text, span)

    def _take(self, event: Json, since_us: int) -> None:
        known = event["ext"]["delivery"]
        origin, _, number = known["id"].rpartition("-")
        id, span = int(number), until_now(since_us)
        assert self._ledger.origin in ("", origin)
        self._ledger.origin = origin
        copy = self._ledger.find(self.name, id) or self._ledger.reopen(self.name, id)
        copy = copy or self._arrived(event, id, span)
        copy.look_again(is_flagged="redelivered" in known)
        assert copy.generation == known.get("generation", 0), (copy, known)
        copy.hand(span)
        if self.is_oneway:
            copy.settle(End.WRITTEN, span)
            return
        self.work.append(Work(copy, known["seq"], self._judge(self, copy)))

    def _arrived(self, event: Json, id: int, span: Span) -> Copy:
        """A copy that was not known to be in this queue."""
        known = [copy for copy in self._ledger.copies if copy.message.id == id]
        raise AssertionError(f"{self.name} got {event}, but {known}")


def _is_said(work: Work) -> bool:
    return bool(work.verdict.code) or work.verdict.is_explicit


def _said(work: Work) -> Json:
    if not work.verdict.code:
        return {"seq": work.seq, "state": "OK"}
    verdict = {"seq": work.seq, "errorCode": work.verdict.code, "message": work.verdict.text}
    return verdict | ({"delay": _SOON_MS} if work.verdict.code == STUMBLE else {})
