"""Sends the writes of each turn of the event loop together, once and in order."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from math import inf
from time import perf_counter

from holdfast.delivery.messages.marks import BatchMark
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store.links.link import StoreLink
from holdfast.store.opening.write_right import StoreState, WriteRight
from holdfast.store.writing.pending_publishes import report
from holdfast.store.writing.turn_buffer import TurnBuffer
from holdfast.store.writing.turn_writes import PendingCall, TurnWrites
from holdfast.store.writing.unanswered_calls import UnansweredCalls

# How long calls may be made in one turn of the event loop, in which other work has its own time.
_TURN_S = 0.003
# How long acks wait for others before they are sent.
_LAZY_S = 0.05


class TurnWriter:
    """Decides when writes are sent: urgent ones when their turn ends, acks slightly later.

    A very large turn is sent in parts, over several turns of the event loop. Later writes wait.

    Args:
        buffer: The writes to send.
        calls_of: Returns the calls for the writes of a turn.
        send: Sends one of these calls.
        on_sent: Called when everything has been sent.
    """

    def __init__(
        self,
        link: StoreLink,
        right: WriteRight,
        unanswered: UnansweredCalls,
        buffer: TurnBuffer,
        *,
        calls_of: Callable[[TurnWrites], Iterator[PendingCall]],
        send: Callable[[PendingCall], None],
        on_sent: Callable[[], None],
    ) -> None:
        self._link = link
        self._right = right
        self._unanswered = unanswered
        self._buffer = buffer
        self._calls_of = calls_of
        self._send = send
        self._on_sent = on_sent
        self._loop = asyncio.get_running_loop()
        self._is_due = False
        self._end_turn_soon: Callable[[], object] = partial(self._loop.call_soon, self.flush)
        # Called before a turn is sent, for what must precede it in the log of this shard.
        self.before_turn: Callable[[], None] | None = None
        # Calls `_send_lazy` for acks, which wait for others.
        self._lazy: asyncio.TimerHandle | None = None
        self._afters: list[Callable[[], None]] = []
        # The rest of a very large turn, which later turns send, and the callbacks that wait for it.
        self._rest: Iterator[PendingCall] | None = None
        self._rest_afters: list[Callable[[], None]] = []
        # Make calls that must follow the calls of the rest.
        self._rest_followed_by: list[Callable[[], None]] = []
        # Set once the rest is sent.
        self._rest_gone: asyncio.Event | None = None

    @property
    def is_sending(self) -> bool:
        """Whether a part of a large turn has not been sent yet."""
        return self._rest is not None

    @property
    def sends_soon(self) -> bool:
        """Whether the writes so far can be sent when this turn ends."""
        return self._rest is None and self._buffer.has_few_sessions

    def flush_by(self, end_turn_soon: Callable[[], None]) -> None:
        """Set the callback that makes the end of the turn call `flush`."""
        self._end_turn_soon = end_turn_soon

    def flush_soon(self) -> None:
        """Send urgent writes when the turn ends."""
        if not self._is_due:
            self._is_due = True
            self._end_turn_soon()

    def send_lazily(self) -> None:
        """Send non-urgent writes slightly later, so that acks of several turns are combined."""
        if self._lazy is None:
            self._lazy = self._loop.call_later(_LAZY_S, self._send_lazy)

    def after(self, done: Callable[[], None]) -> None:
        """Call back when all earlier calls have been sent and answered."""
        self._afters.append(done)
        self.flush_soon()

    def flush(self) -> None:
        """Send urgent writes now."""
        if self._is_due and self._rest is None:
            self._is_due = False
            self._send_turns(everything=bool(self._afters))

    def send_all(self) -> None:
        """Send all writes at once, including acks that wait for others."""
        self._send_some(inf)
        self._send_turns(everything=True)
        self._send_some(inf)

    async def sent(self) -> None:
        """Wait until a large turn has been sent. Sending it at once would delay other work."""
        if self._rest is not None:
            self._rest_gone = self._rest_gone or asyncio.Event()
            await self._rest_gone.wait()

    def send_behind(self, send: Callable[[], None]) -> None:
        """Call `send` when all writes so far have been sent, which may take several turns."""
        if self._rest is None:
            self._send_turns(everything=True)
        if self._rest is None:
            send()
        else:
            self._rest_followed_by.append(send)

    def brought(self, hand_overs: Mapping[str, BatchMark], reply: object) -> None:
        """Hear the answer to a call that stores hand-overs with their messages."""
        if reply is None:
            self._buffer.follow(hand_overs)
            # The store soon hears which of them have not followed.
            self.send_lazily()
        else:
            self._buffer.withdraw(hand_overs)

    def refuse_messages(self) -> None:
        """Inform publishers that the store will not have the messages collected so far."""
        self._loop.call_soon(report, self._buffer.drop_messages(), PersistOutcome.REFUSED)

    def _send_lazy(self) -> None:
        """Send the acks that have waited long enough. The rest of a large turn goes first."""
        if self._rest is None:
            self._send_turns(everything=True)
        else:
            self._lazy = self._loop.call_later(_LAZY_S, self._send_lazy)

    def _send_turns(self, *, everything: bool) -> None:
        if everything and self._lazy is not None:
            self._lazy.cancel()
            self._lazy = None
        if self._right.state is StoreState.FENCED:
            self._buffer.clear()
            self._afters = []
        if not self._right.may_write:
            return
        if self.before_turn is not None:
            self.before_turn()
        if not self._link.is_up:
            self.refuse_messages()
        if everything and self._buffer.early and (retracted := self._buffer.retract()):
            self._afters.append(partial(self._buffer.withdraw, retracted))
        turns = self._buffer.take() if everything else self._buffer.take_urgent()
        while any(turn.hands_over for turn in turns[1:]):
            # The replies of a later turn are about to leave, so nothing before it can wait.
            for outgoing in self._calls_of(turns.pop(0)):
                self._send(outgoing)
        self._rest = chain.from_iterable(map(self._calls_of, turns))
        self._rest_afters, self._afters = self._afters, []
        self._send_some(_TURN_S)

    def _send_some(self, limit_s: float) -> None:
        """Send the rest, as much as this turn of the event loop has time for.

        Later changes must not overtake it.
        """
        rest = self._rest
        if rest is None:
            return
        ends_at, has_sent = perf_counter() + limit_s, False
        for outgoing in rest:
            if has_sent and outgoing.may_wait and perf_counter() > ends_at:
                self._rest = chain((outgoing,), rest)
                # Two turns later, so that requests read in the meantime are answered between two
                # calls.
                self._loop.call_soon(self._loop.call_soon, self._send_some, _TURN_S)
                self._link.flush()
                return
            self._send(outgoing)
            has_sent = True
        self._end_rest()

    def _end_rest(self) -> None:
        self._rest = None
        if self._rest_gone is not None:
            self._rest_gone.set()
            self._rest_gone = None
        followed_by, self._rest_followed_by = self._rest_followed_by, []
        for send in followed_by:
            send()
        afters, self._rest_afters = self._rest_afters, []
        for done in afters:
            self._unanswered.follow(done)
        self._link.flush()
        self._on_sent()
        # Sends the writes that arrived in the meantime.
        self.flush()
