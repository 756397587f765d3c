"""Decides what the client does next after a reply, or after none, and how soon; no I/O.

The server's advice decides. Where it has none, or cannot be reached, the pause is random and its
limit doubles with each failure, so that the clients of a restarted server do not return together.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from holdfast.client.wire import HANDSHAKE, part_of

_FIRST_LIMIT_S = 0.5
# In the first minute without an answer, no pause is longer: most servers are back by then.
_MINUTE_S, _LONGEST_IN_MINUTE_S = 60.0, 5.0
# A server that says nothing holds a connect for less than this, as CometD and Faye do.
_USUAL_TIMEOUT_S = 60.0


class Step(Enum):
    """The message to send next."""

    HANDSHAKE = "handshake"
    CONNECT = "connect"
    STOP = "stop"


_ADVISED = {"handshake": Step.HANDSHAKE, "retry": Step.CONNECT, "none": Step.STOP}
# The step after a refusal without advice.
_USUAL = {True: Step.STOP, False: Step.HANDSHAKE}


class Pacing:
    """The advice in force, and the failures since the last success."""

    def __init__(self, random: Callable[[], float], *, longest_pause_s: float) -> None:
        """`random` returns numbers from 0 to 1."""
        self._random = random
        self._longest_pause_s = longest_pause_s
        self._interval_s = 0.0
        self.step = Step.HANDSHAKE
        self.failures = 0
        # How long the pauses since the last success were, together.
        self._paused_s = 0.0
        # How long the server holds a connect, ...
        self.timeout_s = _USUAL_TIMEOUT_S
        # ... and how long it keeps a session whose client is silent, if it says so.
        self.max_interval_s: float | None = None

    def answered(self, reply: Mapping[str, Any]) -> float:
        """Take the reply to a handshake or a connect; return the seconds until the next step."""
        is_handshake = reply.get("channel") == HANDSHAKE
        advised = self._take_advice(reply)
        if reply.get("successful") is True:
            self.failures = 0
            # Advice to handshake stands only in refusals, but some servers leave it in.
            self.step = Step.STOP if advised is Step.STOP else Step.CONNECT
            return 0.0 if is_handshake else self._interval_s
        self.failures += 1
        self.step = advised or _USUAL[is_handshake]
        if is_handshake and self.step is Step.CONNECT:
            self.step = Step.HANDSHAKE
        # A server that has forgotten the session gets the first handshake at once.
        pause_s = self._backoff_s() if is_handshake or self.failures > 1 else 0.0
        return max(self._interval_s, pause_s)

    def unanswered(self) -> float:
        """Take the loss of a reply; return the seconds until the same step is tried again."""
        self.failures += 1
        return self._backoff_s()

    def _backoff_s(self) -> float:
        if self.failures == 1:
            self._paused_s = 0.0
        limit_s = min(_FIRST_LIMIT_S * 2.0 ** min(self.failures - 1, 16), self._longest_pause_s)
        if self._paused_s < _MINUTE_S:
            limit_s = min(limit_s, _LONGEST_IN_MINUTE_S)
        pause_s = limit_s * self._random()
        self._paused_s += pause_s
        return pause_s

    def _take_advice(self, reply: Mapping[str, Any]) -> Step | None:
        advice = reply.get("advice")
        if not isinstance(advice, dict):
            return None
        self._interval_s = _seconds(advice.get("interval"), 0.0)
        self.timeout_s = _seconds(advice.get("timeout"), self.timeout_s)
        longest_s = _seconds(advice.get("maxInterval"), -1.0)
        self.max_interval_s = longest_s if longest_s > 0 else self.max_interval_s
        return _ADVISED.get(str(part_of(advice, "reconnect")))


def _seconds(value: object, default_s: float) -> float:
    return value / 1000 if isinstance(value, int | float) and value >= 0 else default_s
