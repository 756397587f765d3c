"""Unfolds frames into rows: the reference for every reader."""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, TypeVar, cast

from holdfast.journal.frame import USUALLY, Delivered, Frame, FrameUnreadable
from holdfast.journal.schema import NS_PER_US, Event

T = TypeVar("T")


def unfold(frame: Frame) -> list[Event]:
    """Return the frame's events: publishes, then deliveries, then changes."""
    try:
        events = list(_Unfolding(frame).events())
        for event in events:
            _check(event)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise FrameUnreadable("a frame whose columns do not fit together") from error
    return events


class _Unfolding:
    def __init__(self, frame: Frame) -> None:
        self._head, self._body = frame
        self._names = self._body.get("names", [])
        self._channels = self._body.get("channels", [])
        self._messages = list(self._known_messages())
        self._groups = self._body.get("groups", [])

    def events(self) -> Iterator[Event]:
        yield from self._published()
        if "delivered" in self._body:
            yield from self._delivered(self._body["delivered"])
        yield from self._changed()

    def _event(self, kind: str, after: int) -> Event:
        return Event(self._head.node, self._head.t0 + after, kind)

    def _known_messages(self) -> Iterator[dict[str, Any]]:
        block = self._body.get("messages")
        if block is None:
            return
        for id, channel, origin in zip(
            block["id"],
            block["channel"],
            block.get("origin", repeat(-1, len(block["id"]))),
            strict=True,
        ):
            yield {
                "msg": self._head.t0 * NS_PER_US + id,
                "origin": _word(self._names, origin) or self._head.origin_or_node,
                "channel": _word(self._channels, channel),
            }

    def _published(self) -> Iterator[Event]:
        block = self._body.get("published")
        if block is None:
            return
        rows = len(block["message"])
        for number, by, *counts in zip(
            block["message"],
            block["by"],
            block["copies"],
            block.get("kept", repeat(USUALLY["kept"], rows)),
            block["size"],
            block.get("priority", repeat(USUALLY["priority"], rows)),
            strict=True,
        ):
            message = _at(self._messages, number)
            copies, kept, size, priority = map(_number, counts)
            ts = min(message["msg"] // NS_PER_US, self._head.t1)
            yield Event(self._head.node, ts, "published")._replace(
                **message,
                copies=copies,
                kept=kept,
                size=size,
                priority=priority,
                sender=_word(self._names, by),
            )

    def _delivered(self, block: Delivered) -> Iterator[Event]:
        missing = [None] * len(block["kind"])
        for kind, numbers, group, times, *why in zip(
            block["kind"],
            block["messages"],
            block["receivers"],
            block["t"],
            block.get("attempt", missing),
            block.get("code", missing),
            block.get("wording", missing),
            block.get("letter", missing),
            block.get("fingerprint", missing),
            block.get("generation", missing),
            block.get("kept", missing),
            strict=True,
        ):
            attempt, code, wording, letter, fingerprint, generation, kept = why
            receivers = _at(self._groups, group)
            each = _listed(times)
            if len(each) == 1:
                each = each * len(receivers)
            for number in _listed(numbers):
                for receiver, after in zip(receivers, each, strict=True):
                    yield self._event(kind, after)._replace(
                        **_at(self._messages, number),
                        receiver=_word(self._names, receiver),
                        attempt=attempt,
                        code=code,
                        wording=wording,
                        letter=letter,
                        fingerprint=fingerprint,
                        generation=generation,
                        kept=kept,
                    )

    def _changed(self) -> Iterator[Event]:
        block = cast("dict[str, list[Any]]", self._body.get("changed", {}))
        rows = zip(*(block[name] for name in _CHANGED), strict=True) if block else ()
        for kind, after, name, channel, what, number in rows:
            yield self._event(kind, after)._replace(
                receiver=_word(self._names, name),
                channel=_word(self._channels, channel),
                what=what,
                number=number,
            )


_CHANGED = ("kind", "t", "name", "channel", "what", "number")
_TEXTS = (
    *("node", "kind", "origin", "channel", "receiver", "sender"),
    *("code", "wording", "fingerprint", "what"),
)
_TYPES = [str if name in _TEXTS else int for name in Event._fields]


def _check(event: Event) -> None:
    """Check the event's kind and time: the JSON may contain anything."""
    if None in event[:3]:
        raise TypeError(event)
    for value, wanted in zip(event, _TYPES, strict=True):
        if value is not None and type(value) is not wanted:
            raise TypeError(value)


def _listed(given: int | list[int]) -> list[int]:
    return given if isinstance(given, list) else [given]


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


def _at(known: Sequence[T], number: int) -> T:
    if _number(number) < 0:
        raise IndexError(number)
    return known[number]


def _word(words: Sequence[str], number: int) -> str | None:
    """Return the word; -1 means none, or an unknown channel."""
    return None if _number(number) == -1 else _at(words, number)
