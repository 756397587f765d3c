"""Keeps a channel's publishes in order while one of them waits for the answers of other shards."""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.bayeux.state.server_state import ServerState

if TYPE_CHECKING:
    from holdfast.bayeux.session import Session
    from holdfast.delivery.requests.request import Request


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

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self.waiting: dict[str, deque[Turn]] = {}

    def take(self, turn: Turn) -> None:
        """Begin the publish now or, if others of its channel are not over, after them."""
        waiting = self.waiting.get(turn.channel)
        if waiting is not None:
            waiting.append(turn)
        elif not turn.begin(turn):
            self.waiting[turn.channel] = deque([turn])

    def ask(
        self, request: "Request[Session] | None", ask: Callable[[Turn], bool], turn: Turn
    ) -> bool:
        """Ask other shards, when the store has the request that they are asked for.

        Otherwise, after a kill, sessions would answer a request of which its shard knows nothing.

        Args:
            ask: Asks them. Returns whether the publish is over.

        Returns:
            Whether it is.
        """
        if request is None or not request.is_durable:
            return ask(turn)
        self._state.requests.keep_by_itself(request)
        self._state.store.after(partial(self._ask_later, turn, ask))
        return False

    def _ask_later(self, turn: Turn, ask: Callable[[Turn], bool]) -> None:
        if ask(turn):
            self.over(turn)

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
            self._state.log.exception("a publish to %s failed", turn.channel)
            return True
