"""Messages that wait to be sent, and the callers that wait for their replies; no I/O."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from holdfast.client.errors import ClientError, ConnectionLost, NotConnected, ReplyError
from holdfast.client.wire import Json

# A request has at most this many messages: Holdfast lets fewer than 256 of a session wait for the
# store, ...
MOST_IN_REQUEST = 200
# ... and these bytes of data, about: servers refuse requests of a few MiB.
MOST_BYTES = 512 * 1024
# How often a message is sent to a server that fails on it, or that knows the session only on
# connects.
_MOST_FAILURES = 5
_SESSION_UNKNOWN = 402
_UNKNOWN = (
    "the server may or may not have accepted the message; publish with a key to have such messages "
    "repeated"
)
_NO_KEYS = (
    "the server may or may not have accepted the message, and does not know publish keys: it may "
    "deliver a repeated message twice"
)


class Repeat(Enum):
    """When a message may be sent again although the server may have it already."""

    NEVER = "never"
    # The message has a key: only servers that know keys recognise the second one.
    BY_KEY = "by key"
    # A second one changes nothing, or is the lesser evil.
    ALWAYS = "always"

    def is_allowed(self, *, knows_keys: bool) -> bool:
        """Return whether a server that knows keys, or does not, may get the message again."""
        return self is Repeat.ALWAYS or (self is Repeat.BY_KEY and knows_keys)


@dataclass(slots=True, eq=False)
class Outgoing:
    """A message on its way to the server."""

    message: Json
    reply: asyncio.Future[Json]
    repeat: Repeat = Repeat.NEVER
    size: int = 200
    # Whether a request that failed as a whole had this message, so that it goes alone now.
    is_alone: bool = field(default=False, init=False)
    # Whether a server may have it, although no reply came.
    may_have_arrived: bool = field(default=False, init=False)
    # Whether it is in a request that has no reply yet.
    is_under_way: bool = field(default=False, init=False)
    failures: int = field(default=0, init=False)

    def fail(self, error: ClientError) -> None:
        if not self.reply.done():
            self.reply.set_exception(error)

    def given_up(self, timeout_s: float) -> ClientError:
        """Return the error for a caller that waits no longer than this."""
        if self.is_under_way or self.may_have_arrived:
            return ConnectionLost(f"no reply within {timeout_s:g} s: {_UNKNOWN}")
        return NotConnected(f"no connection within {timeout_s:g} s: the message was not sent")


class OutgoingQueue:
    """First in, first out; what has to be sent again goes first."""

    def __init__(self) -> None:
        self._waiting: deque[Outgoing] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, outgoing: Outgoing) -> None:
        self._waiting.append(outgoing)

    def put_first(self, sent: Iterable[Outgoing]) -> None:
        """Put these before all others, in their order."""
        again = [*sent]
        for each in again:
            each.is_under_way = False
        self._waiting.extendleft(reversed(again))

    def take(self, *, knows_keys: bool) -> list[Outgoing]:
        """Take the messages for one request; leave out those whose sender has given up.

        Repeats for a server that knew keys fail if this one does not.
        """
        taken: list[Outgoing] = []
        size = 0
        while self._waiting and len(taken) < MOST_IN_REQUEST and size < MOST_BYTES:
            if self._waiting[0].is_alone and taken:
                break
            each = self._waiting.popleft()
            if each.may_have_arrived and not each.repeat.is_allowed(knows_keys=knows_keys):
                each.fail(ConnectionLost(_NO_KEYS))
            if not each.reply.done():
                each.is_under_way = True
                taken.append(each)
                size += each.size
            if each.is_alone:
                break
        return taken

    def lost(self, sent: Sequence[Outgoing], *, was_sent: bool, knows_keys: bool) -> None:
        """Note that a request got no reply: send again what may be sent again."""
        again = []
        for each in sent:
            each.may_have_arrived |= was_sent
            if not was_sent or each.repeat.is_allowed(knows_keys=knows_keys):
                again.append(each)
            else:
                each.fail(ConnectionLost(_UNKNOWN if knows_keys else _NO_KEYS))
        self.put_first(again)

    def refused(self, sent: Sequence[Outgoing], error: str) -> None:
        """Note that a request was refused as a whole: find the message that it was for."""
        if len(sent) == 1:
            sent[0].fail(ReplyError({**sent[0].message, "error": error}))
            return
        for each in sent:
            each.is_alone = True
        self.put_first(sent)

    def failed(self, sent: Sequence[Outgoing], reason: str, *, knows_keys: bool) -> None:
        """Note that the server failed on a request: find the message on which it always does.

        Without a bound, that message would block all others.
        """
        if len(sent) == 1:
            sent[0].failures += 1
            if sent[0].failures >= _MOST_FAILURES:
                text = f"the server failed {_MOST_FAILURES} times on this message: {reason}"
                sent[0].fail(ConnectionLost(text))
        for each in sent:
            each.is_alone = True
        self.lost(sent, was_sent=True, knows_keys=knows_keys)

    def answered(self, sent: Sequence[Outgoing], replies: Iterable[Json]) -> bool:
        """Pass replies on; return False if the server no longer knows the session.

        Messages that it refused for that reason are sent again in the next session.
        """
        by_id = {reply.get("id"): reply for reply in replies}
        again = []
        for each in sent:
            reply = by_id.get(each.message["id"])
            if reply is None:
                each.fail(ConnectionLost("the server did not answer this message"))
            elif reply.get("successful") is True:
                if not each.reply.done():
                    each.reply.set_result(reply)
            else:
                error = ReplyError(reply)
                each.failures += error.code == _SESSION_UNKNOWN
                if error.code == _SESSION_UNKNOWN and each.failures < _MOST_FAILURES:
                    again.append(each)
                else:
                    each.fail(error)
        self.put_first(again)
        return not again

    def fail_all(self, error: ClientError) -> None:
        """Fail all waiting callers: nothing more is sent."""
        while self._waiting:
            self._waiting.popleft().fail(error)
