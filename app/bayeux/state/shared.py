"""Rows of a shard that others know as a whole, in order with messages: topics, members.

A shard tells another one everything that it has, in parts, and then what changes: one call behind
the other. Without the right answer to one of them it begins again. So does a shard that has
started, which also asks the others to tell it everything.

What is small, and what all must know before something else happens, is told otherwise: see
`cluster/rows.py`.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar

from holdfast.bayeux.state.calls import Answer, Asker, Asking, Calls
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.ports.other_shards import OthersPort

# How many rows one call has, and about how many bytes of names.
_MOST: Final = 500
_MOST_BYTES: Final = 128 * 1024
# After a call that was not taken.
_PAUSE_S: Final = 1.0

# What a row is about.
K = TypeVar("K")
Row = list[Any]


class Rows(Protocol[K]):
    """What one feature tells other shards, and what it does with what they tell."""

    def everything_for(self, shard: int, /) -> Iterator[K]:
        """Return what a shard is told at first."""
        ...

    def row_of(self, key: K, /) -> Row:
        """Return what is told about it now."""
        ...

    def is_nothing(self, row: Row, /) -> bool:
        """Return whether a row says that there is nothing, which needs not be told at first."""
        ...

    def replace(self, shard: int, rows: Sequence[Row], /) -> None:
        """Take everything that a shard has."""
        ...

    def take(self, shard: int, row: Row, /) -> None:
        """Take what has changed."""
        ...


class _Peer(Generic[K]):
    """Another shard: what it is told, and what it tells.

    Args:
        what: The operation of the calls.
        first: A number that no earlier process has had.
    """

    def __init__(
        self,
        rows: Rows[K],
        calls: Calls,
        homes: HomesPort,
        others: OthersPort,
        *,
        shard: int,
        what: str,
        first: int,
    ) -> None:
        self._rows = rows
        self._calls, self._homes = calls, homes
        self._others = others
        self._shard = shard
        self._what = what
        # Whether that shard is to tell everything, too.
        self.asks = False
        # What has changed since it was told.
        self.pending: dict[K, None] = {}
        # Everything, while it is told; numbers of this beginning, and of the next call.
        self._whole: Iterator[K] | None = None
        self._series, self._part = first, 0
        # How many calls have no answer yet.
        self._sent = 0
        # When to begin, if it is to begin again.
        self._again_at: float | None = None
        # What it tells: its beginning and next call, and the rows so far of everything.
        self._heard = 0, 0
        self._fresh: list[Row] | None = None

    def begin(self) -> None:
        """Tell everything, behind the call that was sent last."""
        self._again_at = None
        self.pending.clear()
        self._whole = self._rows.everything_for(self._shard)
        self._series, self._part = self._series + 1, 0
        self.go_on()

    def tick(self, now: float) -> None:
        """Begin again, if that is due, and tell what has changed."""
        if self._again_at is not None and not self._others.is_away(self._shard):
            if not self._again_at:
                self._again_at = now + _PAUSE_S
            elif now >= self._again_at:
                self.begin()
        self.go_on()

    def go_on(self) -> None:
        """Send the next call, if there is one and the last one was answered."""
        if not self._sent:
            self._send()

    def hurry(self) -> None:
        """Tell all changes now: what follows in the log needs them."""
        while self._whole is None and self.pending and self._send():
            pass

    def _send(self) -> bool:
        """Send the next call. Returns whether it is sent."""
        whole = self._whole
        # Before everything was told, a change says nothing.
        is_due = whole is not None or bool(self._part and self.pending)
        if self._again_at is not None or not is_due:
            return False
        if not self._homes.may_send(self._shard):
            self._again_at = 0.0
            return False
        rows = self._rows_of_whole(whole) if whole is not None else self._rows_of_changes()
        told = {
            "series": self._series,
            "part": self._part,
            "asks": self.asks,
            "is_whole": whole is not None,
            "is_last": self._whole is None,
            "rows": rows,
        }
        self._part += 1
        self._sent += 1
        answered = partial(self._answered, self._series, self.asks)
        self._calls.send(self._shard, self._what, told, answered)
        return True

    def _rows_of_whole(self, whole: Iterator[K]) -> list[Row]:
        rows: list[Row] = []
        size = 0
        for key in whole:
            row = self._rows.row_of(key)
            if not self._rows.is_nothing(row):
                rows.append(row)
                size += sum([len(each) for each in row if isinstance(each, str)])
            if len(rows) >= _MOST or size >= _MOST_BYTES:
                return rows
        self._whole = None
        return rows

    def _rows_of_changes(self) -> list[Row]:
        keys = [*islice(self.pending, _MOST)]
        for key in keys:
            del self.pending[key]
        return [self._rows.row_of(key) for key in keys]

    def _answered(self, series: int, asked: bool, answer: Answer | None) -> None:
        self._sent -= 1
        if answer:
            self.asks &= not asked
        elif series == self._series:
            self._again_at = 0.0
        self.go_on()

    def hear(self, told: Asking, asker: Asker) -> None:
        """Take what it tells, and answer whether it was the next call."""
        if told["asks"]:
            self.begin()
        series, part = told["series"], told["part"]
        if told["is_whole"] and not part:
            self._heard, self._fresh = (series, 0), []
        is_next = (series, part) == self._heard
        if is_next:
            self._heard = series, part + 1
            self._take(told["rows"], is_last=told["is_last"])
        asker.answer({"taken": True} if is_next else {})

    def _take(self, rows: Sequence[Row], *, is_last: bool) -> None:
        fresh = self._fresh
        if fresh is None:
            for row in rows:
                self._rows.take(self._shard, row)
            return
        fresh += rows
        if is_last:
            self._fresh = None
            self._rows.replace(self._shard, fresh)

    def lose(self) -> None:
        """Forget everything that it has told: it has to tell that again."""
        self._heard, self._fresh = (0, 0), None
        self._rows.replace(self._shard, ())


class Shared(Generic[K]):
    """Tells all other shards the rows of this one, and hears theirs.

    Args:
        what: The operation of the calls.
    """

    def __init__(
        self,
        rows: Rows[K],
        state: ServerState,
        homes: HomesPort,
        others: OthersPort,
        *,
        what: str,
    ) -> None:
        self._backlog = state.backlog
        self.shards = homes.others
        first = state.node.stamp()
        self._peers: dict[int, _Peer[K]] = {
            shard: _Peer(rows, state.calls, homes, others, shard=shard, what=what, first=first)
            for shard in self.shards
        }
        state.calls.handle(what, self._hear)
        self._has_begun = self._is_due = False

    def tick(self, now: float) -> None:
        """Begin, or begin again, and tell what has changed."""
        if not self._has_begun:
            self._has_begun = True
            for shard in self.shards:
                self.ask(shard)
        for peer in self._peers.values():
            peer.tick(now)

    def ask(self, shard: int) -> None:
        """Tell everything, and let that shard do so, too."""
        self._peers[shard].asks = True
        self._peers[shard].begin()

    def note(self, shard: int, key: K) -> None:
        """Take note of a change that a shard is told some time."""
        self._peers[shard].pending[key] = None

    def tell_soon(self) -> None:
        """Tell what has changed at the end of the turn."""
        if not self._is_due:
            self._is_due = True
            self._backlog.at_turn_end(self._tell)

    def _tell(self, _: float) -> None:
        self._is_due = False
        for peer in self._peers.values():
            peer.go_on()

    def hurry(self, shard: int) -> None:
        """Let a shard know everything before it gets the next call."""
        self._peers[shard].hurry()

    def _hear(self, told: Asking, asker: Asker, _: float) -> None:
        assert asker.shard is not None
        self._peers[asker.shard].hear(told, asker)

    def lose(self, shard: int) -> None:
        """Forget what a shard has told."""
        self._peers[shard].lose()
