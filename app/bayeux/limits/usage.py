"""The resources that the sessions of one address or one subject use together."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.bayeux.limits.spread import is_spread
from holdfast.bayeux.session import Session
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.delivery.shared_queues.shared_queues import ADDRESSED
from holdfast.delivery.shared_queues.unclaimed_names import is_unclaimed

SESSIONS, SUBSCRIPTIONS, BYTES = "sessions", "subscriptions", "waiting_bytes"
TOPICS = "topics"
# The maximum age of sums. Counting again means a look at each session.
_STALE_MS = 1000


class Payer(NamedTuple):
    """The sender of a message, for which a session may have to be created."""

    # None if it is a session of another shard, or the server itself.
    session: Session | None
    # Its address and its subject, as far as they are charged.
    accounts: Sequence[str]

    @property
    def network(self) -> str:
        """Its address."""
        return self.accounts[0] if self.accounts else ""

    @property
    def subject(self) -> str:
        """Its subject."""
        _, *subjects = self.accounts or ("",)
        return subjects[0].removeprefix("client/") if subjects else NOBODY


class Usage:
    """The sessions of one address or subject, with sums that may be a second old."""

    __slots__ = ("bytes", "counted_ms", "is_divided", "sessions", "subscriptions")

    def __init__(self, *, is_divided: bool = False) -> None:
        # Whether other shards may have sessions that count for the same limit.
        self.is_divided = is_divided
        # A dict in place of a set, which would have the order of addresses in memory.
        self.sessions: dict[Session, None] = {}
        self.subscriptions = self.bytes = 0
        self.counted_ms = 0

    def count(self, now_ms: int) -> None:
        """Recount the sums if they are old."""
        if now_ms >= self.counted_ms + _STALE_MS:
            self.counted_ms = now_ms
            self.subscriptions = sum([len(each.subscriptions) for each in self.sessions])
            self.bytes = sum([each.queue.size for each in self.sessions])


class Usages:
    """The usage of each address and subject that has sessions.

    Args:
        has_home: Returns whether a subject has its home in this shard.
    """

    def __init__(self, has_home: Callable[[str], bool]) -> None:
        self._has_home = has_home
        self._of_subject: dict[str, Usage] = {}
        self._of_network: dict[str, Usage] = {}
        # A session counts for its first address, even if its client moves later.
        self._networks: dict[Session, str] = {}
        # The subjects that unclaimed sessions count for.
        self._senders: dict[Session, str] = {}
        # How often a quota of each kind was exceeded.
        self.exceeded = dict.fromkeys((SESSIONS, SUBSCRIPTIONS, BYTES, ADDRESSED, TOPICS), 0)

    def add(self, session: Session) -> None:
        """Count the session for its subject, and for its caller's address unless it has one.

        Unclaimed sessions count for the senders of messages; see `charge`.
        """
        if not is_unclaimed(session):
            self._count(session, session.subject, session.caller.network, is_far=is_spread(session))

    def charge(self, session: Session, payer: Payer) -> None:
        """Count an unclaimed session for the sender of the message that it was created for."""
        self._senders[session] = payer.subject
        is_far = payer.session is None or is_spread(payer.session)
        self._count(session, payer.subject, payer.network, is_far=is_far)

    def claim(self, session: Session) -> None:
        """Count a session for its first client instead of a sender."""
        self.remove(session)
        self.add(session)

    def _count(self, session: Session, subject: str, network: str, *, is_far: bool = False) -> None:
        if subject != NOBODY:
            usage = self._of_subject.get(subject)
            if usage is None:
                is_divided = is_far and not self._has_home(subject)
                usage = self._of_subject[subject] = Usage(is_divided=is_divided)
            usage.sessions[session] = None
        if network and session not in self._networks:
            self._networks[session] = network
            self._of_network.setdefault(network, Usage(is_divided=True)).sessions[session] = None

    def remove(self, session: Session) -> None:
        _take(self._of_subject, self._senders.pop(session, session.subject), session)
        _take(self._of_network, self._networks.pop(session, ""), session)

    def of_subject(self, subject: str) -> list[Session]:
        """Return the sessions of the subject. Anonymous sessions are not listed."""
        usage = self._of_subject.get(subject)
        return [] if usage is None else list(usage.sessions)

    def of_payer(self, payer: Payer) -> list[Usage]:
        """Return the usages that a sender counts for."""
        if payer.session is not None:
            return self.of(payer.session)
        found = (self._of_subject.get(payer.subject), self._of_network.get(payer.network))
        return [each for each in found if each is not None]

    def of(self, session: Session) -> list[Usage]:
        """Return the usages that a session, or a draft of one, counts for."""
        found = (
            self._of_subject.get(session.subject),
            self._of_network.get(self._networks.get(session, session.caller.network)),
        )
        return [each for each in found if each is not None]


def _take(usages: dict[str, Usage], key: str, session: Session) -> None:
    usage = usages.get(key)
    if usage is not None:
        usage.sessions.pop(session, None)
        if not usage.sessions:
            del usages[key]
