"""Calls: what a part asks the owner of a name, which this shard may be, or another one.

An operation is written once, as a handler at its owner. If that is here, the handler is called as
it is, in the same turn. Otherwise the call and its answer are entries of the logs of two shards: it
is done once, even by a later process, and its answer comes behind what the owner has published. A
server alone owns everything.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from logging import Logger
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.codec.attributes import Way
from holdfast.delivery.codec.enclosing import disclosed, enclosed
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.shard_call import NO_ANSWER, Effect, ShardCall, effect_of

if TYPE_CHECKING:
    from holdfast.delivery.ports.homes import HomesPort

T = TypeVar("T")

# The key "enclosed" may have messages, which another shard gets as they are.
Asking = Mapping[str, Any]
# An empty one says that it could not be carried out.
Answer = dict[str, Any]
# Hears an answer, in this turn or a later one; None if there is none: it may be carried out, or be
# carried out later, or not.
Heard = Callable[[Answer | None], None]


class Asker:
    """Who has called an operation: this shard, or another one. Answer once.

    If the effect of the call is a message that is stored, say so with `answer_with` before that,
    and with `answer_kept` afterwards.
    """

    __slots__ = ("_heard",)

    def __init__(self, heard: Heard) -> None:
        self._heard = heard

    @property
    def shard(self) -> int | None:
        """The other shard; None if it is this one."""
        return None

    @property
    def name(self) -> str:
        """What the call is called at each start, until it is answered."""
        return ""

    def answer(self, answer: Answer) -> None:
        """Answer without a stored effect."""
        self._heard(answer)

    def answer_behind(self, answer: Answer) -> None:
        """Answer so, behind everything that was published in this shard so far."""
        self._heard(answer)

    def answer_with(self, message: Message, answer: Answer) -> None:
        """Let the call that first stores the message answer, in the same step."""

    def answer_kept(self, message: Message, answer: Answer) -> None:
        """Answer that the message is kept, unless the call that has stored it has answered."""
        self._heard(answer)

    def doubt(self) -> None:
        """Leave it without an answer: what becomes of it is unknown."""
        self._heard(None)


class _FarAsker(Asker):
    """Another shard."""

    __slots__ = ("_call", "_homes", "_way")

    def __init__(self, homes: "HomesPort", call: ShardCall, way: Way) -> None:
        super().__init__(ignore)
        self._homes, self._call, self._way = homes, call, way

    @property
    def shard(self) -> int | None:
        return self._call.sender

    @property
    def name(self) -> str:
        return self._call.name

    def answer(self, answer: Answer) -> None:
        self._homes.answer(self._call, enclosed(answer, self._way))

    def answer_behind(self, answer: Answer) -> None:
        self._homes.answer_behind(self._call, enclosed(answer, self._way))

    def answer_with(self, message: Message, answer: Answer) -> None:
        Effect(self._call, enclosed(answer, self._way)).mark(message)

    def answer_kept(self, message: Message, answer: Answer) -> None:
        is_stored = message.is_durable or publish_key_of(message) is not None
        if is_stored and effect_of(message) is not None:
            self._homes.has_answered(message)
        else:
            self.answer(answer)

    def doubt(self) -> None:
        # Who has asked waits for a few seconds.
        pass


# Carries an operation out at a time, and answers.
Handler = Callable[[Asking, Asker, float], None]


class Calls:
    """Knows the owners of names, and the handlers of operations.

    A part lets the owner of a name carry something out by `call`, and several owners by `gather`.
    What is about one other shard, such as the work that it has, is asked by `ask` and `send`.
    """

    def __init__(self, homes: "HomesPort | None", log: Logger) -> None:
        self._homes = homes
        self._log = log
        # With the ways on which messages travel to owners, and back.
        self._handlers: dict[str, tuple[Handler, Way]] = {}

    def handle(self, operation: str, handler: Handler, way: Way = Way.CALL) -> None:
        """Let the handler carry an operation out wherever this shard is the owner."""
        assert operation not in self._handlers
        self._handlers[operation] = handler, way

    # Owners

    @property
    def others(self) -> Sequence[int]:
        """The other shards."""
        return () if self._homes is None else self._homes.others

    def owner_of(self, channel: str) -> int | None:
        """Return the shard that orders the channel; None if it is this one, or if none does."""
        return None if self._homes is None else self._homes.home_of(channel)

    def owners_of(self, pattern: str) -> Sequence[int | None]:
        """Return the shards that may order channels of the pattern; None stands for this one."""
        return (None,) if self._homes is None else self._homes.homes_of(pattern)

    # Calling

    def call(
        self, owner: int | None, operation: str, asked: Asking, heard: Heard, *, now: float
    ) -> None:
        """Let the owner carry the operation out."""
        if owner is None or self._homes is None:
            handler, _ = self._handlers[operation]
            handler(asked, Asker(heard), now)
        else:
            self.ask(owner, operation, asked, heard)

    def may_ask(self, shard: int) -> bool:
        """Return whether another shard can be asked now."""
        return self._homes is not None and self._homes.may_send(shard)

    def ask(self, shard: int, operation: str, asked: Asking, heard: Heard) -> None:
        """Let another shard carry the operation out, or hear None: it cannot be asked now."""
        if self.may_ask(shard):
            self.send(shard, operation, asked, heard)
        else:
            heard(None)

    def send(self, shard: int, operation: str, asked: Asking, heard: Heard) -> None:
        """Let another shard carry the operation out, however late."""
        assert self._homes is not None, "there is no other shard"
        _, way = self._handlers[operation]
        self._homes.send(shard, operation, enclosed(asked, way), partial(_read, heard))

    def gather(
        self,
        operation: str,
        asked: Mapping[int | None, Asking],
        heard_all: Callable[[Sequence[Answer] | None], None],
        *,
        now: float,
    ) -> None:
        """Let several owners carry the operation out. All of them answer, or there is none."""
        if not asked:
            heard_all(())
            return
        gathered = _Gathered(len(asked), heard_all)
        for owner, its in asked.items():
            self.call(owner, operation, its, gathered.take, now=now)

    def do(self, call: ShardCall, now: float) -> None:
        """Carry out what another shard asks for, and answer it now or later."""
        homes = self._homes
        assert homes is not None
        try:
            handler, way = self._handlers[call.what]
            handler(disclosed(call.data), _FarAsker(homes, call, way), now)
        except Exception:
            # Otherwise it would be done again at each start.
            self._log.exception("a letter of shard %d could not be done", call.sender)
            homes.answer(call, NO_ANSWER)


class _Gathered:
    """The answers to several calls."""

    def __init__(self, missing: int, heard_all: Callable[[Sequence[Answer] | None], None]) -> None:
        self._missing = missing
        self._heard_all = heard_all
        self._answers: list[Answer] = []
        self._are_all = True

    def take(self, answer: Answer | None) -> None:
        """Take one of them."""
        assert self._missing, "an owner has answered twice"
        self._missing -= 1
        if answer:
            self._answers.append(answer)
        else:
            self._are_all = False
        if not self._missing:
            self._heard_all(self._answers if self._are_all else None)


def _read(heard: Heard, answer: bytes | None) -> None:
    found = None
    if answer is not None:
        try:
            found = disclosed(answer)
        except (ValueError, LookupError, TypeError, AttributeError):
            found = {}
        if not isinstance(found, dict):
            found = {}
    heard(found)


def said_by(form: Callable[..., T], answer: Answer | None) -> T | None:
    """Return what an answer says, in its form; None if it does not, or there is none."""
    try:
        return form(**answer) if answer else None
    except TypeError:
        return None
