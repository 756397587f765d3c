"""The ways out of a queue but the best one: dead, expired, discarded."""

from collections.abc import Sequence
from functools import partial
from typing import Generic, TypeVar

from app.delivery import error_codes, notices
from app.delivery.counters import Counters, Reason
from app.delivery.deaths import Dead, Death
from app.delivery.entries import Entry
from app.delivery.error_codes import CODES, ErrorCode
from app.delivery.history import History
from app.delivery.keeper import Keeper
from app.delivery.messages import Message
from app.delivery.node import Node
from app.delivery.notices import Notices
from app.delivery.owner import Owner
from app.delivery.receivers import Receiver
from app.delivery.witness import Witness

R = TypeVar("R", bound=Receiver)

_CROWD = 4 * 1024 * 1024


class Exits(Generic[R]):
    """Whatever leaves a queue undelivered is counted here, and written down if that is wanted."""

    def __init__(
        self,
        owner: Owner[R],
        keeper: Keeper,
        counters: Counters,
        node: Node,
        history: History[R],
        notices: Notices,
        witness: Witness | None = None,
    ) -> None:
        self._owner = owner
        self._keeper = keeper
        self._counters = counters
        self._node = node
        self._history = history
        self._notices = notices
        self._witness = witness
        # Bytes of letters on their way to the store, or to those who listen.
        self._burying = 0

    def bury_all(self, receiver: R, code: ErrorCode, text: str, now: float) -> None:
        """Nothing of the queue will be delivered; what has outlived its time is no loss."""
        self.expire(receiver)
        self._history.note_failure(receiver, receiver.queue.handed.values(), now, code, text)
        self.bury(receiver, receiver.queue.clear(), code, text)

    def bury(self, receiver: R, entries: Sequence[Entry], code: ErrorCode, text: str) -> None:
        """These have left the queue undelivered: letters, where letters are wanted."""
        if self._keeper.is_full and entries:
            # Bounded above all; whoever could wait was told to come back.
            self._counters.discarded[Reason.STORE_AWAY] += len(entries)
            if self._witness is not None and not receiver.is_durable:
                # Of a durable receiver the store has them still.
                lost = [entry.message for entry in entries]
                self._witness.discarded(receiver, lost, Reason.STORE_AWAY, is_kept=False)
            self._notices.tell(notices.LOST, receiver.key, code.text, len(entries))
            return
        room = self._keeper.letter_room
        reason = f"{code.meaning}: {text}" if text else code.meaning
        death = Death(receiver.name, code.text, reason, self._owner.policy(receiver))
        channels = {entry.message.channel for entry in entries}
        wanted = {name for name in channels if self._owner.wants_letters(receiver, name)}
        dead, others, crowded = [], [], []
        for entry in entries:
            message = entry.message
            if message.leaves_no_letter or message.channel not in wanted:
                others.append(message)
            elif not room.take(message.channel, receiver.subject, len(message.wire)):
                crowded.append(message)
            else:
                dead.append(Dead(entry, death, self._node.stamp()))
        if dead:
            self._counters.dead += len(dead)
            self._notices.tell(notices.DEAD, receiver.key, code.text, len(dead))
            is_kept = _may_be_kept(receiver, [entry.message for entry in entries])
            self._keeper.bury(dead, receiver.key if is_kept else None)
            size = sum([each.size for each in dead])
            self._burying += size
            self._keeper.after(partial(self._buried, dead, size))
        if others:
            self.discarded(receiver, others, Reason.NO_LETTER)
        if crowded:
            self._notices.tell(notices.NOT_KEPT, receiver.key, code.text, len(crowded))
            self.discarded(receiver, crowded, Reason.LETTERS_FULL)

    def _buried(self, dead: Sequence[Dead], size: int) -> None:
        self._owner.tell(dead, partial(self._told, size))

    def _told(self, size: int) -> None:
        self._burying -= size

    @property
    def is_crowded(self) -> bool:
        """Whether so many letters are on their way that nothing should die that can wait."""
        return self._burying > _CROWD or self._keeper.is_full

    def turned_away(self, receiver: R, message: Message, reason: Reason) -> None:
        """A queue did not take a message: it was full, or its receiver is done with."""
        if reason is Reason.SESSION_ENDED:
            if not receiver.is_given_up:
                self.discarded(receiver, [message], reason)
                return
            code = error_codes.GIVEN_UP
        else:
            code = CODES[reason.value]
        # A flood must not fill what waits for the store: beyond a bound it is only counted.
        if not self.is_crowded and self._owner.wants_letters(receiver, message.channel):
            self.bury(receiver, [Entry(message)], code, "")
        else:
            self.discarded(receiver, [message], reason)

    def discarded(self, receiver: R, messages: Sequence[Message], reason: Reason) -> None:
        """These have left the queue and nobody will ever get them, as agreed."""
        self._counters.discarded[reason] += len(messages)
        kept, others = self._of_store(receiver, messages)
        if others and self._witness is not None:
            self._witness.discarded(receiver, others, reason, is_kept=False)
        if kept:
            if self._witness is not None:
                self._witness.discarded(receiver, kept, reason, is_kept=True)
            self._keeper.settle(receiver.key, [message.id for message in kept])

    def _of_store(
        self, receiver: R, messages: Sequence[Message]
    ) -> tuple[Sequence[Message], Sequence[Message]]:
        """Those of which the store is told, and the others: without room, what it never had."""
        if not _may_be_kept(receiver, messages):
            return (), messages
        if not self._keeper.is_full:
            return messages, ()
        durable = [message for message in messages if message.is_durable]
        return durable, [message for message in messages if not message.is_durable]

    def discard(self, receiver: R, reason: Reason) -> None:
        """The receiver has ended, and the store knows: nobody will get what is in its queue."""
        if receiver.queue.count:
            messages = [entry.message for entry in receiver.queue.clear()]
            self._counters.discarded[reason] += len(messages)
            if self._witness is not None:
                self._witness.discarded(receiver, messages, reason, is_kept=False)

    def discard_handed(self, receiver: R, reason: Reason) -> None:
        """What the receiver has in hands will not be acknowledged any more, nor sent again."""
        handed = receiver.queue.withdraw(list(receiver.queue.handed))
        if handed:
            self.discarded(receiver, [entry.message for entry in handed], reason)

    def expire(self, receiver: R, most: int | None = None) -> int:
        """What waits and has outlived its time leaves; how many messages that were."""
        over = receiver.queue.expire(self._node.now_ms(), most)
        if over:
            self.expired(receiver, over)
        return len(over)

    def expired(self, receiver: R, messages: Sequence[Message]) -> None:
        """Nobody will get these, whose life is over."""
        self._counters.expired += len(messages)
        kept, others = self._of_store(receiver, messages)
        if others and self._witness is not None:
            self._witness.expired(receiver, others, is_kept=False)
        if kept:
            if self._witness is not None:
                self._witness.expired(receiver, kept, is_kept=True)
            self._keeper.settle(receiver.key, [message.id for message in kept])


def _may_be_kept(receiver: Receiver, messages: Sequence[Message]) -> bool:
    """Whether the store has entries of these: also if they were on their way to it at the end."""
    if receiver.is_durable:
        return True
    return receiver.is_closed and any(message.is_durable for message in messages)
