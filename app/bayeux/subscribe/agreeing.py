"""Durable subscriptions are answered when all other shards know of them.

Otherwise one of these could accept a message without storing it, although the subscriber has been
told that it gets it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.changed_session import ChangedSession
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.error_codes import SHARD_UNREACHABLE
from holdfast.delivery.ports.other_shards import OthersPort


class _Added:
    """A subscription that not all shards may know yet."""

    __slots__ = ("is_known", "newest")

    def __init__(self) -> None:
        # The newest subscribe that waits for it.
        self.newest: JoiningPatterns | None = None
        # Whether one of them has heard that all shards know.
        self.is_known = False


class JoiningPatterns:
    """The patterns of a subscribe, until all other shards know of them."""

    __slots__ = ("added", "patterns", "session")

    def __init__(
        self, session: Session, patterns: Sequence[str], added: Mapping[str, _Added]
    ) -> None:
        self.session = session
        self.patterns = patterns
        # Those that the session has because of this subscribe.
        self.added = added


class AgreedSubscriptions:
    """The durable subscriptions that not all shards know yet."""

    def __init__(self, state: ServerState, others: OthersPort) -> None:
        self._state = state
        self._others = others
        # By session and pattern.
        self._waiting: dict[tuple[Session, str], _Added] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def joining(self, session: Session, patterns: Sequence[str]) -> JoiningPatterns:
        """Note which patterns a subscribe is about to add.

        They include what an earlier subscribe added that still waits, and may remove again.
        """
        added: dict[str, _Added] = {}
        for pattern in patterns:
            if pattern not in session.subscriptions:
                added[pattern] = _Added()
            elif (session, pattern) in self._waiting:
                added[pattern] = self._waiting[session, pattern]
        return JoiningPatterns(session, patterns, added)

    def when_known(self, joining: JoiningPatterns, reply: Json, done: Callable[[], None]) -> None:
        """Call `done` when all shards know of the patterns, or cannot within some seconds.

        Then what the subscribe has added is removed, and its reply becomes a refusal.
        """
        for pattern, added in joining.added.items():
            added.newest = joining
            self._waiting[joining.session, pattern] = added
        self._others.when_known(joining.patterns, partial(self._heard, joining, reply, done))

    def _heard(
        self, joining: JoiningPatterns, reply: Json, done: Callable[[], None], is_known: bool
    ) -> None:
        session, unknown = joining.session, []
        for pattern, added in joining.added.items():
            added.is_known |= is_known
            if added.newest is joining and self._waiting.get((session, pattern)) is added:
                del self._waiting[session, pattern]
                if not added.is_known:
                    unknown.append(pattern)
        if not is_known:
            self._refuse(session, unknown, reply)
        done()

    def _refuse(self, session: Session, patterns: Sequence[str], reply: Json) -> None:
        refused = Refused(ErrorReply.SHARD_UNAVAILABLE, SHARD_UNREACHABLE.text)
        refused.fill(reply, self._state.counters.errors)
        for pattern in patterns:
            self._state.subscriptions.part(session, pattern)
        if patterns and session.is_durable and not session.is_gone:
            self._state.store.save(ChangedSession(session, self._state.node))
