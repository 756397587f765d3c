"""Frames unfolded into rows: what every reader must come to, whatever way it takes."""

from collections.abc import Iterator
from itertools import repeat
from typing import Any, cast

from app.journal.frame import USUALLY, Delivered, Frame, FrameUnreadable, listed
from app.journal.schema import NS_PER_US, Event


def unfold(frame: Frame) -> list[Event]:
    """The frame's events: what was published, then what was delivered, then what changed."""
    try:
        return list(_Unfolding(frame).events())
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise FrameUnreadable("a frame whose columns do not fit together") from error


class _Unfolding:
    def __init__(self, frame: Frame) -> None:
        self._head, self._body = frame
        # A place of -1 is that of nobody, and of a channel that is not known.
        self._names = [*self._body.get("names", ()), None]
        self._channels = [*self._body.get("channels", ()), None]
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
        own = len(self._names) - 1
        for id, channel, origin in zip(
            block["id"],
            block["channel"],
            block.get("origin") or repeat(own, len(block["id"])),
            strict=True,
        ):
            yield {
                "msg": self._head.t0 * NS_PER_US + id,
                "origin": self._head.node if origin == own else self._names[origin],
                "channel": self._channels[channel],
            }

    def _published(self) -> Iterator[Event]:
        block = self._body.get("published")
        if block is None:
            return
        rows = len(block["message"])
        for place, copies, kept, size, priority, by in zip(
            block["message"],
            block["copies"],
            block.get("kept") or repeat(USUALLY["kept"], rows),
            block["size"],
            block.get("priority") or repeat(USUALLY["priority"], rows),
            block["by"],
            strict=True,
        ):
            message = self._messages[place]
            yield self._event("published", message["msg"] // NS_PER_US - self._head.t0)._replace(
                **message,
                copies=copies,
                kept=kept,
                size=size,
                priority=priority,
                sender=self._names[by],
            )

    def _delivered(self, block: Delivered) -> Iterator[Event]:
        missing = [None] * len(block["kind"])
        for kind, places, group, times, *why in zip(
            block["kind"],
            block["messages"],
            block["receivers"],
            block["t"],
            block.get("attempt", missing),
            block.get("code", missing),
            block.get("letter", missing),
            block.get("fingerprint", missing),
            block.get("generation", missing),
            strict=True,
        ):
            attempt, code, letter, fingerprint, generation = why
            receivers = self._groups[group]
            each = listed(times)
            if len(each) == 1:
                each = each * len(receivers)
            for place in listed(places):
                for receiver, after in zip(receivers, each, strict=True):
                    yield self._event(kind, after)._replace(
                        **self._messages[place],
                        receiver=self._names[receiver],
                        attempt=attempt,
                        code=code,
                        letter=letter,
                        fingerprint=fingerprint,
                        generation=generation,
                    )

    def _changed(self) -> Iterator[Event]:
        block = cast("dict[str, list[Any]]", self._body.get("changed", {}))
        rows = zip(*(block[name] for name in _CHANGED), strict=True) if block else ()
        for kind, after, name, channel, what, number in rows:
            yield self._event(kind, after)._replace(
                receiver=self._names[name],
                channel=self._channels[channel],
                what=what,
                number=number,
            )


_CHANGED = ("kind", "t", "name", "channel", "what", "number")
