"""Where in their histories subscriptions start."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.known_options import QosInvalid
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.json_text import whole
from holdfast.delivery.routing.kept_messages import cursor_of

_US_PER_MS = 1000
# A message id as in events, with or without the name of the server.
_MESSAGE_ID = re.compile(r"(?:[a-z0-9-]{1,32}-)?([0-9]{1,19})")
_MOST_DIGITS = 2**63
_NEW_ONLY, _ALL = -1, -2
# How many channels a catch-up reads, and how many may have separate starts.
MOST_CHANNELS = 1_000


class Start(NamedTuple):
    """Where a subscription starts in a history: after a cursor, or at the newest messages."""

    cursor: int | None = None
    # How many of the newest messages; all if negative.
    entries: int = 0
    newest_first: bool = False

    @property
    def is_at_end(self) -> bool:
        """Whether it needs nothing from the history."""
        return self.cursor is None and not self.entries


AT_THE_END = Start()
AT_THE_BEGINNING = Start(entries=-1)


@dataclass(frozen=True, slots=True)
class Starts:
    """The starts of the subscriptions in one message."""

    ordinary: Start
    # Other starts, by channel or pattern.
    named: Mapping[str, Start] = field(default_factory=dict)
    # Whether it asks for cursors, and whether in Salesforce's form.
    has_cursors: bool = True
    has_replay_ids: bool = False

    @property
    def operation(self) -> Operation:
        """Return the operation that a login must be allowed to use this."""
        return Operation.REPLAY if self.has_cursors else Operation.HISTORY

    def of_pattern(self, pattern: str) -> Start:
        """Return the start of a subscription. Some of its channels may have others."""
        return self.named.get(pattern, self.ordinary)


def starts_of(replay: object, epoch: str) -> Starts | None:
    """Read `ext.replay`; None if it asks for nothing. Raises `Refused`."""
    if replay is None or replay is False:
        return None
    if not (isinstance(replay, Mapping) and any(name.startswith("/") for name in replay)):
        return Starts(_start_of(replay, epoch))
    if len(replay) > MOST_CHANNELS or not all(name.startswith("/") for name in replay):
        raise _invalid()
    named = {name: _start_of(value, epoch) for name, value in replay.items()}
    return Starts(AT_THE_END, named, has_replay_ids=True)


def _start_of(value: object, epoch: str) -> Start:
    if value is None or value is True or value == {}:
        return AT_THE_END
    if isinstance(value, Mapping):
        return _start_of_object(value, epoch)
    if isinstance(value, str):
        found = _MESSAGE_ID.fullmatch(value)
        if found is None or int(found[1]) >= _MOST_DIGITS:
            raise _invalid()
        return Start(cursor_of(int(found[1])))
    number = whole(value)
    if number == _NEW_ONLY:
        return AT_THE_END
    if number == _ALL:
        return AT_THE_BEGINNING
    return Start(_natural(value))


def _start_of_object(value: Mapping[str, Any], epoch: str) -> Start:
    if value.keys() == {"time"}:
        # Messages of this millisecond are included.
        return Start(max(_natural(value["time"]) * _US_PER_MS - 1, 0))
    if not {"cursor"} <= value.keys() <= {"cursor", "epoch"}:
        raise _invalid()
    cursor = _natural(value["cursor"])
    # Cursors of another epoch are meaningless here: all messages may be new.
    return Start(cursor if value.get("epoch", epoch) == epoch else 0)


def _natural(value: object) -> int:
    number = whole(value)
    if number is None or not 0 <= number < _MOST_DIGITS // _US_PER_MS:
        raise _invalid()
    return number


def _invalid() -> Refused:
    return Refused(ErrorReply.EXT_INVALID, "user.illegalArgument", "replay")


def initial_update(asked: Mapping[str, Any]) -> Starts | None:
    """Read `history` and `initialUpdate` of a subscription's QoS. Raises `QosInvalid`."""
    history, is_wanted = asked.get("history"), asked.get("initialUpdate")
    if not isinstance(is_wanted, bool | None):
        raise QosInvalid("initialUpdate")
    if not isinstance(history, Mapping | None):
        raise QosInvalid("history")
    if history is None:
        history = {}
        is_wanted = is_wanted is True
    count = whole(history.get("numEntries", 1))
    newest_first = history.get("newestFirst", True)
    is_known = history.keys() <= {"numEntries", "newestFirst"}
    if count is None or count < -1 or type(newest_first) is not bool or not is_known:
        raise QosInvalid("history")
    if is_wanted is False or not count:
        return None
    return Starts(Start(None, count, newest_first), has_cursors=False)
