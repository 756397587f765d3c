"""What one address or one subject may cost the server in a while; whatever is beyond gets 429."""

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from app.bayeux.advice import reconnect_advice
from app.bayeux.caller import Caller
from app.bayeux.errors import BayeuxError, Refused, RequestRefused
from app.bayeux.options import BudgetRates
from app.delivery.buckets import Buckets, Rate
from app.delivery.error_codes import HOLDBACK
from app.delivery.notices import OVERSPENT
from app.delivery.receivers import NOBODY
from app.delivery.verdicts import Verdict

if TYPE_CHECKING:
    from app.bayeux.exchange import Exchange
    from app.bayeux.server import Bayeux
    from app.bayeux.sessions import Session

# Seconds whose tokens a bucket holds: bursts of this length pass at any rate.
BURST_S = 10


class Budget:
    """The budget of one kind, for all addresses and all subjects."""

    def __init__(self, kind: str, per_s: int) -> None:
        self.kind = kind
        # How often it was not enough.
        self.overspent = 0
        self._is_limited = per_s > 0
        rate = Rate(burst=max(per_s, 1) * BURST_S, per_s=float(max(per_s, 1)))
        self._addresses = Buckets(rate)
        self._subjects = Buckets(rate)

    def spend(self, network: str, subject: str, now: float, count: int = 1) -> float:
        """Zero if both have as much left, and it is spent; otherwise in how many seconds.

        Without a network, or a name, there is nothing on this side to spend.
        """
        if not self._is_limited:
            return 0.0
        is_named = subject != NOBODY
        wait_s = self._subjects.wait_s(subject, now, count) if is_named else 0.0
        if wait_s == 0.0 and network:
            wait_s = self._addresses.take(network, now, count)
        if wait_s > 0.0:
            self.overspent += 1
        elif is_named:
            self._subjects.take(subject, now, count)
        return wait_s


class Budgets:
    """All budgets of a server. Who calls from an address that is not counted spends nothing."""

    def __init__(self, bayeux: "Bayeux", rates: BudgetRates) -> None:
        self._bayeux = bayeux
        self.requests = Budget("requests", rates.requests)
        self.handshakes = Budget("handshakes", rates.handshakes)
        self.publishes = Budget("publishes", rates.publishes)
        self.bytes = Budget("bytes", rates.bytes)
        self.letters = Budget("letters", rates.letters)
        self.all = (self.requests, self.handshakes, self.publishes, self.bytes, self.letters)

    def admit(self, caller: Caller, now: float) -> None:
        """Spend what an HTTP request costs its address. Raises `RequestRefused`."""
        self._admit(self.requests, caller.network, now, 1)

    def admit_bytes(self, caller: Caller, size: int, now: float) -> None:
        """Spend what the body of a request costs its address. Raises `RequestRefused`."""
        self._admit(self.bytes, caller.network, now, size)

    def _admit(self, budget: Budget, network: str, now: float, count: int) -> None:
        wait_s = budget.spend(network, NOBODY, now, count)
        if wait_s > 0.0:
            self._tell(budget, network, NOBODY)
            raise RequestRefused(BayeuxError.BUDGET_EXCEEDED, wait_s=wait_s)

    def spend_request(self, exchange: "Exchange", size: int) -> Refused | None:
        """Spend what `admit` could not, of its subject, and over a socket of its address, too.

        None if that is left; otherwise how its messages are refused, each by itself.
        """
        network, session = exchange.caller.network, exchange.session
        subject = NOBODY if session is None else session.subject
        of_address = "" if exchange.pipe is None else network
        if not of_address and subject == NOBODY:
            return None
        for budget, count in ((self.requests, 1), (self.bytes, size)):
            wait_s = budget.spend(of_address, subject, self._bayeux.now, count)
            if wait_s > 0.0:
                return self._refused(budget, network, subject, wait_s)
        return None

    def spend_handshake(self, caller: Caller) -> None:
        """Raises `Refused`; so do all below."""
        self._spend(self.handshakes, caller.network, NOBODY, 1)

    def spend_claim(self, session: "Session") -> None:
        """A handshake, whose address was counted, turns out to be this subject's."""
        network, subject = session.caller.network, session.subject
        wait_s = self.handshakes.spend("", subject, self._bayeux.now) if network else 0.0
        if wait_s > 0.0:
            raise self._refused(self.handshakes, network, subject, wait_s)

    def spend_publish(self, session: "Session") -> None:
        self._spend(self.publishes, session.caller.network, session.subject, 1)

    def spend_letters(self, session: "Session", verdicts: Sequence[Verdict]) -> None:
        """What verdicts may make of dead letters."""
        count = len([each for each in verdicts if not each.ok and each.code is not HOLDBACK])
        if count:
            self._spend(self.letters, session.caller.network, session.subject, count)

    def _spend(self, budget: Budget, network: str, subject: str, count: int) -> None:
        if network:
            wait_s = budget.spend(network, subject, self._bayeux.now, count)
            if wait_s > 0.0:
                raise self._refused(budget, network, subject, wait_s)

    def _refused(self, budget: Budget, network: str, subject: str, wait_s: float) -> Refused:
        self._tell(budget, network, subject)
        bayeux = self._bayeux
        if budget is self.handshakes:
            # Who comes back together would be refused together.
            delay_s = wait_s + bayeux.admission.delay_s()
            advice = reconnect_advice(bayeux.options, "handshake", delay_s)
        else:
            # Not a moment too early: it would be refused again.
            advice = reconnect_advice(bayeux.options, "retry", ceil(wait_s * 1000) / 1000)
        return Refused(BayeuxError.BUDGET_EXCEEDED, budget.kind, advice=advice)

    def _tell(self, budget: Budget, network: str, subject: str) -> None:
        who = network if subject == NOBODY else f"{network} as {subject}"
        self._bayeux.notices.tell(OVERSPENT, who, budget.kind)
