"""Calls that the store has not answered yet."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Protocol, cast

from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.ports.journal_port import NO_JOURNAL, DeliveryJournal
from holdfast.store.format.scripts import ScriptCall
from holdfast.store.links.call_numbers import CallNumbers
from holdfast.store.links.link import Answer
from holdfast.store.links.reply_errors import CallSkipped, ScriptFailed, StoreRefused, WentBack
from holdfast.store.links.resp import Word
from holdfast.store.links.script import Script

log = logging.getLogger(__name__)

# The store does not take this process for its writer, or has lost its calls.
_REFUSALS = frozenset({"BACK", "EPOCH"})


class _Kind(Enum):
    """What becomes of a call that a store did not carry out, because it had lost changes."""

    # It is made again before the store is told what it lacks: memory has what it changes.
    CHANGE = "change"
    # It is made again afterwards: a publish is not in memory before its answer, and may repeat
    # another whose key the store gets again.
    PUBLISH = "publish"
    # It tells the store what it lacks, which begins again.
    TELL = "tell"


class _Sent:
    """A call without an answer."""

    __slots__ = ("call", "done", "kind", "may_be_refused", "may_be_skipped", "note", "postponed")

    def __init__(
        self,
        call: ScriptCall,
        done: Answer,
        note: int,
        kind: _Kind,
        *,
        may_be_refused: bool,
        may_be_skipped: bool = False,
    ) -> None:
        # The number of the call comes first. Changing the list is safe, because the call owns it.
        call.args.insert(0, "")
        self.call = call
        self.done = done
        # The number of the call's journal note, or 0.
        self.note = note
        self.kind = kind
        self.may_be_refused = may_be_refused
        # Whether it counts as refused if the store has carried out later calls instead.
        self.may_be_skipped = may_be_skipped
        # The note itself, while the call waits to be made again.
        self.postponed: object = None


class ScriptLink(Protocol):
    """What sends calls to the store in order: a `StoreLink`."""

    def script(
        self,
        script: Script,
        keys: Sequence[Word],
        args: Sequence[Word],
        done: Answer,
        *,
        may_be_refused: bool = False,
    ) -> None: ...

    def flush(self) -> None: ...


class UnansweredCalls:
    """Makes numbered calls over the link, and passes each answer to its callback.

    Calls that the store did not carry out, because it had lost changes, are kept, and made again
    under other numbers. A call that may be refused is made again at once if the store has carried
    out later ones instead, unless it may be skipped.

    Args:
        on_refused: Called when the store refuses this process as a writer, or has lost calls.
            Returns whether the calls will be made again.
        on_answered: Called after every answer.
    """

    def __init__(
        self,
        link: ScriptLink,
        *,
        on_refused: Callable[[ScriptFailed | WentBack], bool],
        on_answered: Callable[[], None],
    ) -> None:
        # Informed whether the note of a call is in the store.
        self.journal: DeliveryJournal = NO_JOURNAL
        self._link = link
        self._on_refused = on_refused
        self._on_answered = on_answered
        self._loop = asyncio.get_running_loop()
        self._numbers = CallNumbers()
        # Calls in the order of their answers.
        self._sent: deque[_Sent] = deque()
        # Calls to be made again; in each list, calls lost last come before the others.
        self._lost: dict[_Kind, deque[_Sent]] = {_Kind.CHANGE: deque(), _Kind.PUBLISH: deque()}
        self._lost_now: list[_Sent] = []
        # How many of the sent calls tell the store what it lacks.
        self._told = 0
        self._answers = 0
        # Callbacks, each with the number of answers that it waits for.
        self._followers: deque[tuple[int, Callable[[], None]]] = deque()

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def answered(self) -> int:
        """The number of the call whose answer came last, as its callback sees it."""
        return self._numbers.answered

    @property
    def answered_name(self) -> str:
        """The name under which the store notes that call."""
        return self._numbers.answered_name

    def begin(self, epoch: str) -> None:
        """Number the calls from 1 in a new epoch. All earlier calls must have been answered."""
        self._numbers.begin(epoch.rpartition(".")[2])
        for sent in reversed(self._lost_now):
            self._lost[sent.kind].appendleft(sent)
        self._lost_now = []

    def make(
        self,
        call: ScriptCall,
        done: Answer,
        *,
        note: int = 0,
        may_be_refused: bool = False,
        is_publish: bool = False,
        may_be_skipped: bool = False,
    ) -> None:
        """Make a call once. `note` is the number of its journal note, if it has one.

        A call that may be skipped is never made behind later ones: it has failed then.
        """
        self._make(
            _Sent(
                call,
                done,
                note,
                _Kind.PUBLISH if is_publish else _Kind.CHANGE,
                may_be_refused=may_be_refused,
                may_be_skipped=may_be_skipped,
            )
        )

    def tell(self, call: ScriptCall, may_be_refused: bool, done: Answer = ignore) -> None:
        """Make a call that tells the store what it lacks. If it is lost, it has no answer."""
        self._make(_Sent(call, done, 0, _Kind.TELL, may_be_refused=may_be_refused))

    def make_changes_again(self) -> Iterator[None]:
        """Make lost calls again that are not publishes, in their order, one in each step."""
        return self._make_again(self._lost[_Kind.CHANGE])

    def make_publishes_again(self) -> Iterator[None]:
        """Make lost publishes again, in their order, one in each step."""
        return self._make_again(self._lost[_Kind.PUBLISH])

    def _make_again(self, lost: deque[_Sent]) -> Iterator[None]:
        while lost:
            self._make(lost.popleft())
            yield

    def _make(self, sent: _Sent) -> None:
        self._sent.append(sent)
        self._told += sent.kind is _Kind.TELL
        script, keys, args = sent.call
        args[0] = self._numbers.next(may_be_refused=sent.may_be_refused)
        self._link.script(script, keys, args, self._answered, may_be_refused=sent.may_be_refused)

    def follow(self, done: Callable[[], None]) -> None:
        """Call back in a later turn, once all calls so far are answered."""
        lost = len(self._lost_now) + sum(map(len, self._lost.values()))
        waiting = len(self._sent) - self._told + lost
        if waiting:
            self._followers.append((self._answers + waiting, done))
        else:
            self._loop.call_soon(done)

    def _answered(self, reply: object) -> None:
        sent = self._sent.popleft()
        self._told -= sent.kind is _Kind.TELL
        try:
            reply = self._numbers.heard(reply)
        except WentBack as error:
            self._on_refused(error)
            reply = error.reply
        if isinstance(reply, CallSkipped):
            if not sent.may_be_skipped:
                self._make_anew(sent)
                return
            reply = StoreRefused(str(reply))
        is_refused = isinstance(reply, ScriptFailed) and reply.code in _REFUSALS
        if is_refused and self._on_refused(cast("ScriptFailed", reply)):
            self._postpone(sent)
        else:
            self._report(sent, reply)
        self._on_answered()

    def _make_anew(self, sent: _Sent) -> None:
        """Make a call behind the later ones that were carried out, to get its real answer."""
        self._take_note_along(sent)
        self._make(sent)
        self._link.flush()

    def _postpone(self, sent: _Sent) -> None:
        """Keep a call that was not carried out."""
        if sent.kind is not _Kind.TELL:
            self._lost_now.append(sent)
            self._take_note_along(sent)

    def _take_note_along(self, sent: _Sent) -> None:
        if sent.note and sent.postponed is None:
            sent.postponed = self.journal.postpone()

    def _report(self, sent: _Sent, reply: object) -> None:
        if isinstance(reply, ScriptFailed) and reply.code not in _REFUSALS:
            log.error("the store did not carry out a call: %s", reply)
        if sent.kind is _Kind.TELL:
            sent.done(reply)
            return
        self._answers += 1
        if sent.note:
            # A repeated message leaves no note either.
            is_repeated = isinstance(reply, list) and len(reply) > 1 and bool(reply[1])
            is_there = not (is_repeated or isinstance(reply, Exception))
            self.journal.answered(sent.note, is_there=is_there, postponed=sent.postponed)
        sent.done(reply)
        while self._followers and self._followers[0][0] <= self._answers:
            self._loop.call_soon(self._followers.popleft()[1])
