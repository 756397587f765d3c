"""Reads the log of another shard: each frame changes this shard once, and in order.

The reader does no I/O. Its caller reads the stream behind `next_read` and passes on what it finds,
and the answers to what the reader asked for by its port.

Two things happen to each frame, both in the order of the log. Receivers that need no store get its
messages when it is read: `at_once` is the place up to which they have them. Durable ones get theirs
when the store of this shard has them, with the place behind the frame. If the store takes nothing,
frames that do not fit into memory are read ahead for the former alone, and again when it does.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Final, Generic

from holdfast.cluster.frames import Frame, FrameUnreadable, read
from holdfast.cluster.places import (
    NOWHERE,
    Incarnation,
    Place,
    PlaceUnreadable,
    go_on,
    incarnations_of,
    is_behind,
    passed_with,
    place_of,
    text_of,
)
from holdfast.cluster.reader_port import A, Gap, Move, NotTaken, ReaderPort
from holdfast.cluster.waiting import Fields, Waiting, place_in

# How long the place in the store may stay behind if there is nothing to store: if the sender of a
# frame may wait for that, and otherwise.
_FOLLOW_AWAITED_S: Final = 0.05
_FOLLOW_S: Final = 1.0
# How long after an empty read the reader makes sure that the log did not go back.
_LOOK_S: Final = 1.0
# How long it waits when the store takes nothing, or a frame is unreadable.
_PAUSE_S: Final = 1.0
# If the store answers nothing for so long, frames are read ahead.
_AHEAD_S: Final = 0.1
# How many frames, and how many bytes of them, may wait for answers of the store.
_MOST_FRAMES: Final = 64
_MOST_BYTES: Final = 4 * 1024 * 1024
# How many bytes are taken by one call, and what the last frame brings.
_MOST_TAKEN: Final = 256 * 1024
# The names of the fields of a frame in the stream.
_BEFORE: Final = b"before"
_PLACE: Final = b"place"
_FOR_ALL: Final = b"all"


class LogReader(Generic[A]):
    """Follows the log of one other shard.

    Args:
        own: The name of the parts of frames that are for this shard alone.
        place: The place in this shard's store, as text.
        passed: The incarnations passed before it, as text.
        since: Up to there, nothing is shown at once: the end of the log after this shard was
            opened, because no session here could have subscribed before.
    """

    def __init__(
        self, port: ReaderPort[A], *, own: int, place: str, passed: str, since: Place = NOWHERE
    ) -> None:
        self._port = port
        self._own = str(own).encode()
        # The place behind the last frame that was read, and where the next read begins.
        self.place = place_of(place)
        self.after = self.place.id
        self._passed = incarnations_of(passed)
        # The place that the store has once it has answered all calls, and whether it has that
        # reader's incarnations, too.
        self._stored = place
        self._has_passed = True
        # What is known to be in the store: the place, also as text, and the
        # incarnations passed before.
        self.confirmed = self.place
        self._confirmed, self._confirmed_passed = place, passed
        self.since = since
        # The place up to which everybody who needs no store has got everything.
        self.at_once = since if is_behind(since, self.place) else self.place
        self._waiting: deque[Waiting[A]] = deque()
        # The new ones among them.
        self._new: deque[Waiting[A]] = deque()
        self._is_showing = False
        # Whether the next read is for those alone that need no store, as the last one was, and
        # whether it should not wait for a frame; since when the store has answered nothing; and
        # whether frames do not follow there, so that this is impossible.
        self.is_ahead = self.is_brief = False
        self._was_ahead = True
        self._stuck_since: float | None = None
        self._has_lost_way = False
        self._bytes = 0
        # What is to be stored of the frames that were read together, and the frames that have it.
        self._kept: list[A] = []
        self._kept_bytes = 0
        self._to_take: list[Waiting[A]] = []
        self._unanswered = 0
        # Whether the store did not carry out a call, and others may have no answer yet; and whether
        # this is why nothing is read for now.
        self._is_refused = self._is_pause_of_store = False
        # The place behind the last frame for which its sender may wait.
        self.awaited = NOWHERE
        # When the place in the store must follow; when to read again after a pause.
        self._follow_at = 0.0
        self._read_at = 0.0
        # When the log last had something, or was looked at; whether to look at its incarnations.
        self._heard_at = 0.0
        self._is_looking = False
        self._looks_at = ""
        # The incarnations that the log listed when it was asked why its frames do not follow.
        self._listed: Sequence[Incarnation] | None = None
        # The place from which that frame is to be read, if frames before it were removed.
        self._link: Place | None = None
        # The books: entries taken, or passed over because no receiver is here; those that were
        # removed because this shard is behind and does not need them; and missing ones.
        self.taken = 0
        self.skipped = 0
        self.missing = 0

    @property
    def is_awaited(self) -> bool:
        """Whether others may wait until this shard has learned what is before a later place."""
        learned, awaited = self.learned, self.awaited
        return (learned.fence, learned.n) < (awaited.fence, awaited.n)

    @property
    def taken_log(self) -> tuple[str, str]:
        """What the store has for certain: the place, and the incarnations before it, as texts."""
        return self._confirmed, self._confirmed_passed

    @property
    def shown(self) -> Place:
        """The place behind the last frame that was shown."""
        return self._waiting[0].before if self._waiting else self.place

    @property
    def learned(self) -> Place:
        """The place up to which everything is shown, facts included, and certainly stored."""
        shown, stored = self.shown, self.confirmed
        return shown if (shown.fence, shown.n) < (stored.fence, stored.n) else stored

    @property
    def is_behind_start(self) -> bool:
        """Whether everything was shown that the log had after this shard was opened."""
        since = self.since
        return not self._waiting and (self.place.fence, self.place.n) >= (since.fence, since.n)

    @property
    def has_followed(self) -> bool:
        """Whether the store has the place behind the last entry that was read."""
        return self.confirmed.total == self.place.total and not self._waiting

    @property
    def is_looking(self) -> bool:
        """Whether the reader needs the field `openings` of the sender's meta."""
        return self._is_looking

    @property
    def looks_at(self) -> str:
        """The id of the frame that does not follow, whose link the reader needs, too."""
        return self._looks_at

    def next_read(self, now: float) -> str | None:
        """Return the id behind which to read; None if nothing should be read now."""
        has_room = len(self._waiting) < _MOST_FRAMES and self._bytes < _MOST_BYTES
        is_stuck, self.is_ahead, self.is_brief = False, False, False
        if self._is_looking:
            return None
        if has_room and not self._is_refused:
            self._stuck_since = None
            if now < self._read_at:
                is_stuck = self._is_pause_of_store
            elif self._was_ahead or not is_behind(self.at_once, self.place):
                return self.after
            else:
                # While frames are read again, every other read is for new ones.
                self.is_brief = True
        else:
            if self._stuck_since is None:
                self._stuck_since = now
            is_stuck = self._is_refused or now - self._stuck_since >= _AHEAD_S
        if not (self._new or self._has_lost_way):
            self.is_ahead = is_stuck or self.is_brief
        if self.is_brief and not self.is_ahead:
            return self.after
        return self.at_once.id if self.is_ahead else None

    def heard(self, after: str, found: Sequence[tuple[bytes, Fields]], now: float) -> None:
        """Handle the frames that a read behind this id has found; none is an answer, too."""
        self._was_ahead = self.is_ahead
        if self.is_ahead:
            self._hear_ahead(after, found)
            return
        if self._is_looking or self._is_refused or after != self.after:
            return
        self._is_pause_of_store = False
        if found:
            self._heard_at = now
        elif now - self._heard_at >= _LOOK_S:
            self._heard_at = now
            self._is_looking, self._looks_at = True, ""
        for _, fields in found:
            if not self._has_entered(fields, now):
                break
            if self._kept_bytes > _MOST_TAKEN:
                self._take()
        self._take()

    def _hear_ahead(self, after: str, found: Sequence[tuple[bytes, Fields]]) -> None:
        """Show frames to those that need no store. They are read again when it takes them."""
        for _, fields in found if after == self.at_once.id else ():
            try:
                before, behind = place_in(fields, _BEFORE), place_in(fields, _PLACE)
                frames = self._frames_in(fields)
            except (FrameUnreadable, PlaceUnreadable):
                # That is reported when the frame is read again.
                self._has_lost_way = True
                return
            self._has_lost_way = before != self.at_once
            if self._has_lost_way or not self._comes_next(frames):
                return
            at_once: list[A] = []
            for frame in frames:
                at_once += self._port.sort(frame, is_new=True).at_once
            self._show_at_once(behind, at_once)

    def _frames_in(self, fields: Fields) -> Sequence[Frame]:
        return [read(fields[name]) for name in (_FOR_ALL, self._own) if name in fields]

    def _has_entered(self, fields: Fields, now: float) -> bool:
        """Handle a frame. Returns whether it is the next one."""
        try:
            before, behind = place_in(fields, _BEFORE), place_in(fields, _PLACE)
            if not (self._follows(before, behind) or self._is_beyond_gap(behind)):
                self._is_looking, self._looks_at = True, behind.id
                self._listed = None
                return False
            frames = self._frames_in(fields)
        except (FrameUnreadable, PlaceUnreadable) as error:
            self._port.complain(str(error))
            self._read_at, self._is_pause_of_store = now + _PAUSE_S, False
            return False
        self._enter(before, behind, frames, now)
        return True

    def looked(self, incarnations: str, now: float, link: str = "") -> None:
        """Handle which incarnations the sender's meta lists.

        `link` is the place with which the frame `looks_at` is linked, if there is one.
        """
        self._is_looking = False
        try:
            listed = incarnations_of(incarnations)
            self._link = place_of(link) if link else None
        except PlaceUnreadable as error:
            self._port.complain(str(error))
            self._read_at, self._is_pause_of_store = now + _PAUSE_S, False
            return
        self.after = go_on(self.place, self._passed, listed)
        self._listed = listed

    def _follows(self, before: Place, behind: Place) -> bool:
        place = self.place
        # If its store went back, the log had lost its end when the next incarnation began.
        has_lost_end = before.nonce == place.nonce != behind.nonce and before.n <= place.n
        return before == place or has_lost_end

    def _is_beyond_gap(self, behind: Place) -> bool:
        """Return whether what is between the place and this frame is gone.

        That is known if the incarnations were read after the frame was found not to follow.
        """
        is_asked = behind.id == self._looks_at and self._listed is not None
        return is_asked and any(each.nonce == behind.nonce for each in self._listed or ())

    def _is_linked(self) -> bool:
        """Return whether this shard needs nothing of what was removed behind its place."""
        link, place = self._link, self.place
        if link is None:
            return False
        # An incarnation whose frames were all removed is listed no more.
        known = [link.nonce, *[incarnation.nonce for incarnation in self._listed or ()]]
        return place.nonce in known and link.total <= place.total

    def _enter(self, before: Place, behind: Place, frames: Sequence[Frame], now: float) -> None:
        """Handle a frame that is next: show it, and store what is for durable receivers."""
        gap = None
        if not self._follows(before, behind):
            gap = Gap(self.place, before, is_needless=self._is_linked())
        entries = behind.total - before.total
        waiting: Waiting[A] = Waiting(
            self.place, behind, passed=self._passed, entries=entries, gap=gap
        )
        is_awaited = any(frame.is_awaited for frame in frames)
        if behind.nonce != self.place.nonce:
            self._passed = passed_with(self._passed, self.place)
            self._has_passed = False
            is_awaited = True
        if is_awaited:
            self.awaited = behind
        self._listed, self._link, self._looks_at = None, None, ""
        self.place, self.after = behind, behind.id
        waiting.frames, waiting.is_new = frames, is_behind(behind, self.at_once)
        kept: list[A] = []
        for frame in frames:
            of_frame = self._port.sort(frame, is_new=waiting.is_new)
            kept += of_frame.kept
            waiting.at_once += of_frame.at_once
            waiting.later += of_frame.later
            waiting.size += of_frame.size
        self._waiting.append(waiting)
        if waiting.is_new:
            self._has_lost_way = False
            self._new.append(waiting)
        if kept:
            waiting.is_stored = False
            self._bytes += waiting.size
            self._kept += kept
            self._kept_bytes += waiting.size
            self._to_take.append(waiting)
        else:
            due = now + (_FOLLOW_AWAITED_S if is_awaited else _FOLLOW_S)
            self._follow_at = min(self._follow_at or due, due)
        self._show()

    def _take(self) -> None:
        """Store what the frames have that were read together: each call costs much."""
        if self._to_take:
            kept, waiting = self._kept, self._to_take
            self._kept, self._to_take, self._kept_bytes = [], [], 0
            self._move(kept, waiting)

    def _move(self, kept: Sequence[A], waiting: Sequence[Waiting[A]]) -> None:
        behind = str(self.place)
        passed = text_of(self._passed)
        move = Move(self._stored, behind, "" if self._has_passed else passed)
        self._stored, self._has_passed = behind, True
        self._follow_at = 0.0
        self._unanswered += 1
        answered = partial(self._answered, self.place, behind, passed, waiting)
        self._port.take(move, kept, answered)

    def _answered(
        self,
        place: Place,
        behind: str,
        passed: str,
        waiting: Sequence[Waiting[A]],
        answer: NotTaken | None,
    ) -> None:
        self._unanswered -= 1
        if answer is not None:
            self._go_back(waiting, self._confirmed if answer.found is None else answer.found)
            return
        self._stuck_since = None
        self.confirmed, self._confirmed, self._confirmed_passed = place, behind, passed
        for each in waiting:
            each.is_stored = True
        if waiting:
            self._show()

    def go_on(self) -> None:
        """Show what had to wait for something that links bring."""
        self._show()

    def _show(self) -> None:
        if self._is_showing:
            # What links brought lets the loop below go on.
            return
        self._is_showing = True
        try:
            while True:
                if self._new and self._comes_next(self._new[0].frames):
                    first = self._new.popleft()
                    first.is_new = False
                    self._show_at_once(first.behind, first.at_once)
                elif self._waiting and self._waiting[0].is_stored and not self._waiting[0].is_new:
                    self._show_next()
                else:
                    return
        finally:
            self._is_showing = False

    def _comes_next(self, frames: Sequence[Frame]) -> bool:
        """Return whether everything is shown that these come behind."""
        return all(self._port.may_show(each.behind) for each in frames if each.behind)

    def _show_at_once(self, place: Place, messages: Sequence[A]) -> None:
        self.at_once = place
        if messages:
            self._port.show_at_once(place, messages)
        self._port.showed_at_once()

    def _show_next(self) -> None:
        first = self._waiting.popleft()
        self._bytes -= first.size
        self.taken += first.entries
        if first.gap is not None:
            if first.gap.is_needless:
                self.skipped += first.gap.entries
            else:
                self.missing += first.gap.entries
                self._port.note_gap(first.gap)
        for frame in first.frames:
            if frame.facts or frame.seen:
                self._port.learn(first.behind, frame.facts, frame.seen)
        self._port.show(first.behind, first.later)

    def _go_back(self, waiting: Sequence[Waiting[A]], found: str) -> None:
        """Read again from the first frame that the store did not take, after a pause."""
        self._stored = self._confirmed = found
        self.confirmed = place_of(found)
        self._has_passed = False
        self._is_refused = self._was_ahead = True
        if not waiting:
            # Only the place was to follow, and still is.
            self._follow_at = self._follow_at or 1.0
        elif waiting[0] in self._waiting:
            dropped = None
            while dropped is not waiting[0]:
                dropped = self._waiting.pop()
                self._bytes -= dropped.size
                if dropped.is_new:
                    self._new.pop()
            self.place, self._passed = dropped.before, dropped.passed
            self.after = self.place.id
            self._listed, self._looks_at = None, ""

    def follow(self, now: float) -> None:
        """Let the place in the store follow with the next tick."""
        if self._follow_at:
            self.awaited = self.place
            self._follow_at = min(self._follow_at, now)

    def tick(self, now: float) -> None:
        """Let the place in the store follow, if it is due."""
        if self._is_refused:
            if not self._unanswered:
                self._is_refused = False
                self._read_at, self._is_pause_of_store = now + _PAUSE_S, True
            return
        if self._follow_at and now >= self._follow_at and not self._unanswered:
            if self._stored == str(self.place):
                self._follow_at = 0.0
            else:
                self._move((), ())
