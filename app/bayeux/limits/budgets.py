"""Budgets of addresses and subjects per second. Requests beyond them get 429."""

from collections.abc import Sequence
from math import ceil

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.limits.admission import Admission
from holdfast.bayeux.limits.buckets import Buckets, Rate
from holdfast.bayeux.limits.spread import is_spread
from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.errors import ErrorReply, Refused, RequestRefused
from holdfast.delivery.basics.error_codes import HOLDBACK
from holdfast.delivery.basics.notices import OVERSPENT, Notices
from holdfast.delivery.messages.verdicts import Verdict
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.settings import Settings

# Seconds of tokens in a full bucket. Bursts of this length always pass.
BURST_S = 10
# How many messages from histories, or items in a service's answer, cost as much as a request.
_PER_REQUEST = 10


class Budget:
    """The budget of one kind, for all addresses and all subjects.

    Args:
        shards: Among how many shards an address divides what its sessions do. A subject does so
            only with what its scripts publish.
    """

    def __init__(self, kind: str, per_s: int, shards: int = 1) -> None:
        self.kind = kind
        # How many requests exceeded the budget.
        self.overspent = 0
        self._is_limited = per_s > 0
        self._shards = shards
        rate = Rate(burst=max(per_s, 1) * BURST_S, per_s=float(max(per_s, 1)))
        self._addresses = Buckets(rate)
        self._subjects = Buckets(rate)
        self._parts = Buckets(rate)

    def spend(
        self,
        network: str,
        subject: str,
        now: float,
        count: int = 1,
        *,
        is_part: bool = False,
        doors: int = 0,
    ) -> float:
        """Charge both, or neither: return zero, or the seconds until both have enough.

        An empty network or subject is not charged. If other shards may charge the subject too, it
        has its part here.

        Args:
            doors: Among how many doors an address divides this; 0 if shards charge it.
        """
        if not self._is_limited:
            return 0.0
        is_named = subject != NOBODY
        wait_s = self._subjects.wait_s(subject, now, count) if is_named else 0.0
        if is_part and is_named:
            # The home of the subject counts it for its other sessions, too.
            wait_s = max(wait_s, self._parts.wait_s(subject, now, count, self._shards))
        if wait_s == 0.0 and network:
            wait_s = self._addresses.take(network, now, count, doors or self._shards)
        if wait_s > 0.0:
            self.overspent += 1
        elif is_named:
            self._subjects.take(subject, now, count)
            if is_part:
                self._parts.take(subject, now, count, self._shards)
        return wait_s


class Budgets:
    """All budgets of a server. Callers without a network have no address budget."""

    def __init__(
        self, options: Settings, admission: Admission, notices: Notices, *, shards: int
    ) -> None:
        self._options = options
        self._admission = admission
        self._notices = notices
        # Among how many doors an address divides its HTTP requests: each shard has one; on several
        # hosts, as many as live.
        self.doors = shards
        self.requests = Budget("requests", options.budget_requests, shards)
        self.handshakes = Budget("handshakes", options.budget_handshakes, shards)
        self.publishes = Budget("publishes", options.budget_publishes, shards)
        self.bytes = Budget("bytes", options.budget_bytes, shards)
        self.letters = Budget("letters", options.budget_letters, shards)
        # Of handshakes, too, at the door that asks the backend about them.
        self._questions = Budget("handshakes", options.budget_handshakes, shards)
        self.all = (self.requests, self.handshakes, self.publishes, self.bytes, self.letters)

    def admit(self, caller: Caller, now: float) -> None:
        """Charge an HTTP request to its address. Raises `RequestRefused`."""
        self._admit(self.requests, caller.network, now, 1)

    def admit_bytes(self, caller: Caller, size: int, now: float) -> None:
        """Charge the body of a request to its address. Raises `RequestRefused`."""
        self._admit(self.bytes, caller.network, now, size)

    def admit_question(self, caller: Caller, now: float) -> None:
        """Charge a question to the backend, before the home of the session can charge anything.

        Raises `RequestRefused`.
        """
        if not caller.network:
            return
        wait_s = self._questions.spend(caller.network, NOBODY, now, doors=self.doors)
        if wait_s > 0.0:
            self.handshakes.overspent += 1
            self._report(self.handshakes, caller.network, NOBODY)
            raise RequestRefused(ErrorReply.BUDGET_EXCEEDED, wait_s=wait_s)

    def _admit(self, budget: Budget, network: str, now: float, count: int) -> None:
        wait_s = budget.spend(network, NOBODY, now, count, doors=self.doors)
        if wait_s > 0.0:
            self._report(budget, network, NOBODY)
            raise RequestRefused(ErrorReply.BUDGET_EXCEEDED, wait_s=wait_s)

    def spend_request(self, exchange: Exchange, size: int) -> Refused | None:
        """Charge a request to its subject and, over a socket, also to its address.

        Returns None, or the refusal for each of the request's messages.
        """
        network, session = exchange.speaker.caller.network, exchange.session
        subject = NOBODY if session is None else session.subject
        of_address = "" if exchange.pipe is None else network
        if not of_address and subject == NOBODY:
            return None
        is_part = session is not None and is_spread(session)
        for budget, count in ((self.requests, 1), (self.bytes, size)):
            wait_s = budget.spend(of_address, subject, exchange.now, count, is_part=is_part)
            if wait_s > 0.0:
                return self._refused(budget, network, subject, wait_s)
        return None

    def spend_handshake(self, caller: Caller, now: float) -> None:
        """Charge a handshake. Raises `Refused`, like all methods below."""
        self._spend(self.handshakes, caller.network, subject=NOBODY, count=1, now=now)

    def spend_claim(self, session: Session, now: float) -> None:
        """Charge a handshake to its subject once that is known."""
        network, subject = session.caller.network, session.subject
        is_part = is_spread(session)
        wait_s = self.handshakes.spend("", subject, now, is_part=is_part) if network else 0.0
        if wait_s > 0.0:
            raise self._refused(self.handshakes, network, subject, wait_s)

    def spend_publish(self, session: Session, now: float) -> None:
        self._charge(self.publishes, session, 1, now)

    def spend_answer(self, session: Session, items: int, now: float) -> None:
        """Charge the items that a subscribe or a call returns: ten cost as much as a request."""
        count = items // _PER_REQUEST
        if count:
            self._charge(self.requests, session, count, now)

    def spend_letters(self, session: Session, verdicts: Sequence[Verdict], now: float) -> None:
        """Charge the dead letters that the verdicts may cause."""
        codes = [each.code for each in verdicts if not each.ok]
        count = len([each for each in codes if each is None or each.listed is not HOLDBACK])
        if count:
            self._charge(self.letters, session, count, now)

    def spend_invented(self, caller: Caller, now: float) -> None:
        """Charge an id that this deployment never gave, like a verdict that refuses a message."""
        self._spend(self.letters, caller.network, subject=NOBODY, count=1, now=now)

    def admit_invented(self, caller: Caller, now: float) -> None:
        """Charge a cookie that this deployment never gave. Raises `RequestRefused`."""
        if caller.network:
            self._admit(self.letters, caller.network, now, 1)

    def _charge(self, budget: Budget, session: Session, count: int, now: float) -> None:
        network, subject = session.caller.network, session.subject
        self._spend(
            budget, network, subject=subject, count=count, now=now, is_part=is_spread(session)
        )

    def _spend(
        self,
        budget: Budget,
        network: str,
        *,
        subject: str,
        count: int,
        now: float,
        is_part: bool = False,
    ) -> None:
        if network:
            wait_s = budget.spend(network, subject, now, count, is_part=is_part)
            if wait_s > 0.0:
                raise self._refused(budget, network, subject, wait_s)

    def _refused(self, budget: Budget, network: str, subject: str, wait_s: float) -> Refused:
        self._report(budget, network, subject)
        if budget is self.handshakes:
            # Clients that return together would be refused together.
            delay_s = wait_s + self._admission.delay_s()
            advice = reconnect_advice(self._options, "handshake", delay_s)
        else:
            # Not earlier, or the request would be refused again.
            advice = reconnect_advice(self._options, "retry", ceil(wait_s * 1000) / 1000)
        return Refused(ErrorReply.BUDGET_EXCEEDED, budget.kind, advice=advice)

    def _report(self, budget: Budget, network: str, subject: str) -> None:
        who = network if subject == NOBODY else f"{network} as {subject}"
        self._notices.report(OVERSPENT, who, budget.kind)
