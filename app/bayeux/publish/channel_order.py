"""Keeps a channel's publishes in order while one of them waits for the answers of other shards."""

from collections import deque
from collections.abc import Callable
from logging import Logger


class Turn:
    """The place of one publish among the publishes of its channel.

    Args:
        begin: Begins the publish, when all before it are over. Returns whether it is over, too.
        refuse: Refuses the publish, which has not begun; None if it asks no other shard.
    """

    __slots__ = ("begin", "channel", "refuse")

    def __init__(
        self,
        channel: str,
        begin: "Callable[[Turn], bool]",
        refuse: Callable[[], None] | None = None,
    ) -> None:
        self.channel = channel
        self.begin = begin
        self.refuse = refuse


class ChannelOrder:
    """The publishes that wait, by channel. Without other shards, there are never any."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self.waiting: dict[str, deque[Turn]] = {}

    def take(self, turn: Turn) -> None:
        """Begin the publish now or, if others of its channel are not over, after them."""
        waiting = self.waiting.get(turn.channel)
        if waiting is not None:
            waiting.append(turn)
        elif not turn.begin(turn):
            self.waiting[turn.channel] = deque([turn])

    def over(self, turn: Turn, *, is_lost: bool = False) -> None:
        """Go on behind a publish that is over.

        If another shard did not answer it in time (`is_lost`), those that wait for other shards are
        refused. Otherwise each would wait as long, one after the other.
        """
        waiting = self.waiting[turn.channel]
        waiting.popleft()
        if is_lost:
            lost = [each.refuse for each in waiting if each.refuse is not None]
            waiting = deque(each for each in waiting if each.refuse is None)
            self.waiting[turn.channel] = waiting
            for refuse in lost:
                refuse()
        while waiting and self._is_over(waiting[0]):
            waiting.popleft()
        if not waiting:
            del self.waiting[turn.channel]

    def _is_over(self, turn: Turn) -> bool:
        try:
            return turn.begin(turn)
        except Exception:
            # The others must not wait forever.
            self._log.exception("a publish to %s failed", turn.channel)
            return True
