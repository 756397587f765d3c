"""Reads the log of another shard: each read begins when the one before is answered."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from hiredis import ReplyError

from holdfast.store.framing.spacing import Spacing
from holdfast.store.links.reader import fields_of
from holdfast.store.links.resp import RespConnection, Silent, Unusable, pack, unusable_by

# How many frames one read returns, of at most 256 KiB each.
MOST_FRAMES: Final = 16
# A store that does not answer for so long is not there.
_SILENCE_S: Final = 5.0

# By name, the parts of a frame and the places around it.
Fields = Mapping[bytes, bytes]
# Returns the id behind which to read, and how many milliseconds to wait for a frame; None for no
# further read.
NextRead = Callable[[], tuple[str, int] | None]
# Called with the id behind which frames were read, and with these.
Heard = Callable[[str, Sequence[tuple[bytes, Fields]]], None]


class FrameReads:
    """Reads without tasks in between: there may be hundreds of reads a second.

    Args:
        spacing: Says when the next read may begin.
    """

    def __init__(self, log: str, next_read: NextRead, heard: Heard, spacing: Spacing) -> None:
        self._log = log
        self._next_read = next_read
        self._heard = heard
        self._spacing = spacing
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._wire: RespConnection | None = None
        # Whether a read is not answered, behind which id it reads, and whether it waited to begin.
        self._is_reading = False
        self._after = ""
        self._has_waited = False

    async def run(self, wire: RespConnection) -> None:
        """Read until there is no further read. Raises `Unusable`, and what `heard` raises."""
        self._wire = wire
        wire.listen(self._answered)
        wire.lost.add_done_callback(self._lost)
        try:
            self._begin()
            while not self._ended.done():
                await asyncio.wait([self._ended], timeout=_SILENCE_S)
                self._check(wire)
            self._ended.result()
        finally:
            self._wire = None
            wire.lost.remove_done_callback(self._lost)
            if not self._ended.cancel():
                # Whoever was cancelled meanwhile does not ask for it.
                self._ended.exception()

    def _check(self, wire: RespConnection) -> None:
        is_silent = self._loop.time() - wire.heard_at >= _SILENCE_S
        if self._is_reading and is_silent and not self._ended.done():
            raise Silent("it does not answer")

    def _begin(self) -> None:
        wire = self._wire
        if wire is None or self._ended.done():
            return
        try:
            found = self._next_read()
        except Exception as error:
            self._ended.set_exception(error)
            return
        if found is None:
            self._ended.set_result(None)
            return
        self._after, wait_ms = found
        self._is_reading = True
        self._spacing.take(self._loop.time())
        limits = ("COUNT", MOST_FRAMES, "BLOCK", wait_ms)
        wire.write(pack(("XREAD", *limits, "STREAMS", self._log, self._after)))

    def _answered(self, reply: object) -> None:
        self._is_reading = False
        if self._ended.done():
            return
        try:
            if isinstance(reply, ReplyError):
                raise unusable_by(reply)
            frames = _frames_in(reply)
            self._heard(self._after, frames)
        except Exception as error:
            self._ended.set_exception(error)
            return
        spacing = self._spacing
        if self._has_waited:
            spacing.waited(is_useful=len(frames) > 1)
        # A log with more is read on at once.
        self._has_waited = self._loop.time() < spacing.due and len(frames) < MOST_FRAMES
        if self._has_waited:
            self._loop.call_at(spacing.due, self._begin)
        else:
            self._begin()

    def _lost(self, lost: "asyncio.Future[str]") -> None:
        if not self._ended.done():
            self._ended.set_exception(Unusable(lost.result()))


def _frames_in(reply: object) -> Sequence[tuple[bytes, Fields]]:
    if not reply:
        return ()
    streams = cast("dict[bytes, list[list[Any]]]", reply)
    [frames] = streams.values()
    return [(id, fields_of(fields)) for id, fields in frames]
