"""Server-Sent Events: what readers of one channel get, and readers of several."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.delivery.basics.json_text import to_json
from holdfast.web.streams.event_answers import EventAnswer, EventQuestion
from holdfast.web.streams.history_answers import Answer, Question
from holdfast.web.streams.homes_asked import Asking
from holdfast.web.streams.intervals import interval
from holdfast.web.streams.open_response import BEAT
from holdfast.web.streams.readers_here import BEGIN

# Between which times browsers connect again, in ms: not all of them at once.
_RETRY_MS: Final = (500, 3000)
# Codes of errors that pass: browsers would not connect again if a status said so.
PASSING: Final = (429, 503)
# What begins the part of an id that names the division of the deployment among shards.
DIVISION: Final = "d-"


class HistorySource:
    """One channel, for clients of Durable Streams."""

    def __init__(self, asking: Asking, question: Question) -> None:
        self._asking, self._question = asking, question
        self.key = ("stream", question.channel, question.has_envelope)

    async def ask(self, home: int, offset: str, wait_s: float) -> Answer:
        return await self._asking.history(
            home, replace(self._question, offset=offset, wait_s=wait_s)
        )

    def written(self, news: Answer, places: Mapping[int, str], home: int) -> bytes:
        is_news = news.count > 0 or news.end != places[home]
        return history_text(news) if is_news else b""

    def beat(self, places: Mapping[int, str]) -> bytes:
        return BEAT


def history_text(answer: Answer, known: str = "") -> bytes:
    """Return the messages as an event, and the event that says what they are followed by."""
    control: dict[str, object] = {"streamNextOffset": answer.end, "streamCursor": interval(known)}
    if answer.is_last:
        control["upToDate"] = True
    data = f"event: data\ndata:{answer.body}\n\n".encode() if answer.count else b""
    return b"%bevent: control\ndata:%b\n\n" % (data, to_json(control))


class EventSource:
    """Several channels, for `EventSource` of browsers."""

    def __init__(self, asking: Asking, channels: Mapping[int, Sequence[str]]) -> None:
        self._asking, self._channels = asking, channels
        # With another division, the same places belong to other homes.
        self._division = [f"{DIVISION}{asking.division}"] if asking.division else []
        self.key = ("events", *((home, *names) for home, names in channels.items()))

    async def ask(self, home: int, offset: str, wait_s: float) -> EventAnswer:
        return await self._asking.events(home, EventQuestion(self._channels[home], offset, wait_s))

    def written(self, news: EventAnswer, places: Mapping[int, str], home: int) -> bytes:
        parts = [notice_text("lost", lost_said(*each)) for each in news.lost]
        for event, place in zip(news.events, news.offsets, strict=True):
            id = self.id_of({**places, home: place})
            parts.append(f"id: {id}\ndata: {event}\n\n".encode())
        if news.lost and not news.events:
            parts.append(self.id_text({**places, home: news.end}))
        return b"".join(parts)

    def beat(self, places: Mapping[int, str]) -> bytes:
        # A browser that comes back has then no doubt about what happened long ago.
        return self.id_text(places)

    def id_text(self, places: Mapping[int, str]) -> bytes:
        """Return what makes a browser remember the places. A page does not see it."""
        return f"id: {self.id_of(places)}\n\n".encode()

    def id_of(self, places: Mapping[int, str]) -> str:
        """Return the places as clients know them. One that is not there stands for the begin."""
        known = {home: place for home, place in places.items() if place != BEGIN}
        return "~".join([*self._division, *(f"{home}-{place}" for home, place in known.items())])


def retry_text(least_s: float = 0.0) -> bytes:
    """Return after what time a browser should connect again."""
    wait_ms = random.randint(*_RETRY_MS)  # noqa: S311 - no secret
    return b"retry: %d\n" % max(wait_ms, int(least_s * 1000))


def notice_text(name: str, said: Mapping[str, object]) -> bytes:
    """Return an event that is no message."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), to_json(dict(said)))


def lost_said(channel: str, first: int, last: int) -> dict[str, object]:
    """Return what a page learns about messages that may be missing."""
    said: dict[str, object] = {"channel": channel, "error": ErrorReply.HISTORY_LOST.wire()}
    return {**said, "lost": {"from": first, "to": last}} if last else said


def missing_text(channels: Sequence[str]) -> bytes:
    """Return what a page learns about channels that keep no messages."""
    error = ErrorReply.HISTORY_MISSING.wire()
    said = [{"channel": each, "error": error} for each in channels]
    return b"".join([notice_text("missing", each) for each in said])


def farewell(refused: RequestRefused) -> bytes:
    """Return the last event of a stream: why it is over."""
    if refused.error.code in PASSING:
        return retry_text(refused.wait_s) + notice_text("unavailable", {"error": str(refused)})
    name = "expired" if refused.error is ErrorReply.TICKET_EXPIRED else "end"
    return notice_text(name, {"error": str(refused)})
