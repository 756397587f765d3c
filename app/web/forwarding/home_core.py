"""What a home needs of the core besides the handling of requests."""

from collections.abc import Callable

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Exchange
from holdfast.web.scheduling.reading_gate import ReadingGate


class HomeCore:
    """The core, as the homes of all links of this process see it."""

    def __init__(self, bayeux: Bayeux, clock: Callable[[], float], gate: ReadingGate) -> None:
        self.clock = clock
        self._bayeux = bayeux
        self._gate = gate

    @property
    def is_still(self) -> bool:
        """Whether nothing may be handled, because another process will."""
        return self._gate.is_still

    def welcome(self, browser: str, age_s: float) -> None:
        """Remember the identity that a door gave to a new socket so many seconds ago."""
        self._bayeux.identities.welcome_stranger(browser, self.clock() - age_s)

    def release(self, exchange: Exchange) -> None:
        """Answer a connect, if it is held."""
        session = exchange.session
        if session is not None and session.held_connect is exchange:
            self._bayeux.life.answers.release(session, exchange, self.clock())
