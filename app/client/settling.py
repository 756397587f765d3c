"""The messages that the client has received, and the verdicts that it still owes; no I/O.

A message is *open* until all its subscriptions have finished with it. With acks, the ack of a batch
settles its messages without a verdict on each. The client names only exceptions: refusals, messages
that are open when the next connect leaves (they are pending, and get a verdict later), and finished
messages that a refusal would otherwise return to the queue. Messages that no
subscription has begun do return, to be processed after the refused one.
"""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.client.errors import Refuse, refusal_for
from holdfast.client.finished_ids import FinishedIds
from holdfast.client.messages import Message
from holdfast.client.wire import Json


@dataclass(slots=True)
class SentVerdicts:
    """Verdicts on their way to the server, for one of its sessions."""

    session: int
    verdicts: list[Json]


class Settling:
    """The open messages of a client, over all its sessions of the server."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called when a message is finished."""
        self._wake = wake
        self._session = 0
        self._has_acks = False
        self._has_verdicts = False
        # Whether a refusal in this batch takes back whatever is not confirmed by name.
        self._is_explicit = False
        # The last batch that arrived, as the server numbers them.
        self._batch = 0
        # Open messages with an id, and the number of those without one.
        self._open: dict[str, Message] = {}
        self._open_without_id = 0
        self._finished = FinishedIds()
        # The numbers of finished messages that the next ack will settle.
        self._done: list[int] = []
        # The numbers that the server knows to be pending.
        self._pending: set[int] = set()
        self._verdicts: list[Json] = []
        # The numbers of messages whose verdicts are on their way beside the connects.
        self._reported: set[int] = set()

    def begin(self, *, has_acks: bool, has_verdicts: bool) -> None:
        """Start a session of the server, which hands over again what it has no verdict on."""
        self._session += 1
        self._has_acks, self._has_verdicts = has_acks, has_verdicts
        self._is_explicit = False
        self._batch = 0
        self._done.clear()
        self._pending.clear()
        self._verdicts.clear()
        self._reported.clear()
        for message in self._open.values():
            message.seq = None

    @property
    def open_count(self) -> int:
        """The number of messages that are not finished."""
        return len(self._open) + self._open_without_id

    @property
    def has_verdicts(self) -> bool:
        """Whether messages can be refused in this session."""
        return self._has_verdicts

    @property
    def has_news(self) -> bool:
        """Whether there are verdicts that the server has not been sent."""
        return bool(self._verdicts)

    def receive(self, message: Message) -> bool:
        """Note that a message has arrived; return whether it is to be processed."""
        id = message.id
        if id is None:
            self._open_without_id += 1
            return True
        seq = message.seq
        known = self._open.get(id)
        if known is not None:
            self._pending.discard(known.seq or 0)
            known.seq = seq
            return False
        is_wanted_again = message.is_initial and not message.redelivered
        if id in self._finished and not is_wanted_again:
            self._confirm(seq)
            return False
        self._open[id] = message
        return True

    def finish(self, message: Message) -> None:
        """Note that all subscriptions have finished with a message, and whether one refused it."""
        id = message.id
        if id is None:
            self._open_without_id -= 1
        else:
            del self._open[id]
            if message.refusal is None:
                self._finished.add(id)
                self._confirm(message.seq)
            elif message.seq is not None:
                self._refuse(refusal_for(message.refusal), message.seq)
        self._wake()

    def end_batch(self, number: int | None) -> None:
        """Note that all of a batch has arrived; None if the reply did not number it."""
        self._is_explicit = False
        if number is not None:
            self._batch = number

    # What is sent

    def connect_ext(self) -> tuple[Json, SentVerdicts]:
        """Return the `ext` of the next connect, and the verdicts that it carries."""
        sent = self._take()
        ext: Json = {}
        if self._has_acks:
            ext["ack"] = self._batch
            self._done.clear()
        if self._has_verdicts:
            self._pending = {m.seq for m in self._open.values() if m.seq is not None}
            delivery: Json = {}
            if sent.verdicts:
                delivery["verdicts"] = sent.verdicts
            # The ack must not settle messages that are refused in verdicts that may arrive later.
            if self._pending or self._reported:
                delivery["pending"] = sorted(self._pending | self._reported)
            if delivery:
                ext["delivery"] = delivery
        return ext, sent

    def disconnect_ext(self) -> Json:
        """Return the `ext` of the disconnect: only what is finished is confirmed."""
        if self._has_verdicts:
            verdicts = [*self._verdicts, *map(_confirmation, self._done)]
            return {"delivery": {"verdicts": verdicts}} if verdicts else {}
        if self._has_acks and not self.open_count:
            return {"ack": self._batch}
        return {}

    def take_verdicts(self) -> SentVerdicts:
        """Take the verdicts that wait, to send them beside the connects.

        Call `arrived` or `failed` afterwards.
        """
        sent = self._take()
        self._reported.update(verdict["seq"] for verdict in sent.verdicts)
        return sent

    def arrived(self, sent: SentVerdicts) -> None:
        """Note that the server has these verdicts."""
        self._reported.difference_update(verdict["seq"] for verdict in sent.verdicts)

    def failed(self, sent: SentVerdicts) -> None:
        """Send these verdicts again if the session still lives: they may not have arrived."""
        if sent.session == self._session:
            self.arrived(sent)
            self._verdicts = [*sent.verdicts, *self._verdicts]

    def _take(self) -> SentVerdicts:
        sent, self._verdicts = SentVerdicts(self._session, self._verdicts), []
        return sent

    def _confirm(self, seq: int | None) -> None:
        if seq is None or not self._has_verdicts:
            return
        if self._is_explicit or seq in self._pending or not self._has_acks:
            self._pending.discard(seq)
            self._verdicts.append(_confirmation(seq))
        else:
            self._done.append(seq)

    def _refuse(self, refusal: Refuse, seq: int) -> None:
        self._pending.discard(seq)
        self._verdicts.append(refusal.verdict(seq))
        if refusal.returns_others:
            # Without verdicts, finished messages would be delivered again.
            self._is_explicit = True
            self._verdicts += map(_confirmation, self._done)
            self._done.clear()
            self._return_behind(seq)

    def _return_behind(self, refused: int) -> None:
        """Forget messages that no subscription has begun: they come after the refused one."""
        for id, message in [*self._open.items()]:
            seq = message.seq or 0
            if seq > refused and message.left and not message.has_begun:
                message.is_returned = True
                self._pending.discard(seq)
                del self._open[id]


def _confirmation(seq: int) -> Json:
    return {"seq": seq, "state": "OK"}
