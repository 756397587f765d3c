"""What the backend has decided about the channels of one login."""

from collections.abc import Callable, Collection
from math import inf
from typing import Final, NamedTuple

from holdfast.bayeux.wire.errors import ErrorReply, Refused, Undecided, refused_by_backend
from holdfast.bayeux.wire.login import Login
from holdfast.bayeux.wire.operation import Operation
from holdfast.login.rules import RuleGrants, Rules

# How many decisions of one login are kept, besides those about its subscriptions.
_MOST: Final = 100

# An operation on a channel or a pattern.
Asked = tuple[Operation, str]

_DENIED: Final = {
    Operation.SUBSCRIBE: ErrorReply.SUBSCRIBE_DENIED,
    Operation.PUBLISH: ErrorReply.PUBLISH_DENIED,
}


class Said(NamedTuple):
    """A decision, or that there was none."""

    is_allowed: bool
    # Until when it holds, in monotonic seconds.
    ends_at: float = inf
    # What the client is told of a refusal.
    text: str = ""
    # When the client may try again if the backend has not answered; None if it has.
    wait_s: float | None = None


class AskingGrants(RuleGrants):
    """The rights of a login, which the backend decides about where rules say so.

    Args:
        clock: Returns monotonic seconds.
    """

    __slots__ = ("_asked", "_clock", "_said", "open")

    def __init__(self, rules: Rules, login: Login, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._said: dict[Asked, Said] = {}
        # Whether rules have the backend asked, as far as that is known.
        self._asked: dict[Asked, bool] = {}
        # Questions that are not answered yet, and who waits for each.
        self.open: dict[Asked, list[Callable[[], None]]] = {}
        super().__init__(rules, login)

    def _begin(self) -> None:
        # Other rules may come with another mind of the backend.
        self._said.clear()
        self._asked.clear()
        super()._begin()

    def allows(self, operation: Operation, channel: str) -> bool:
        if super().allows(operation, channel):
            return True
        said = self._said.get((operation, channel))
        return said is not None and said.is_allowed and said.ends_at > self._clock()

    def why_not(self, operation: Operation, channel: str) -> Refused | None:
        """Return why the login may not do what `allows` denies; None if the rules say so."""
        asked = operation, channel
        is_asked = self._asked.get(asked)
        if is_asked is None:
            if len(self._asked) >= _MOST:
                self._asked.clear()
            is_asked = self._asked[asked] = self.asks(operation, channel)
        if not is_asked:
            return None
        said = self._said.get(asked)
        if said is None or said.ends_at <= self._clock():
            return Undecided(operation, channel)
        if said.is_allowed:
            return None
        if said.wait_s is not None:
            return unavailable(said.wait_s)
        return refused_by_backend(_DENIED[operation], said.text)

    def learn(self, asked: Asked, said: Said, kept: Collection[str] = ()) -> None:
        """Keep a decision. Those about subscriptions in `kept` are not forgotten for newer ones."""
        self._said.pop(asked, None)
        if len(self._said) >= _MOST + len(kept):
            self._forget_some(kept)
        self._said[asked] = said

    def _forget_some(self, kept: Collection[str]) -> None:
        """Forget the oldest half of what may be forgotten."""
        others = [
            asked
            for asked in self._said
            if not (asked[0] is Operation.SUBSCRIBE and asked[1] in kept)
        ]
        for asked in others[: len(others) // 2 + 1]:
            del self._said[asked]

    def said(self, asked: Asked) -> Said | None:
        """Return the decision that is kept, even if it holds no more."""
        return self._said.get(asked)


def unavailable(wait_s: float) -> Refused:
    """Return the refusal of what the backend has not decided."""
    advice = {"reconnect": "retry", "interval": round(wait_s * 1000)}
    return Refused(ErrorReply.BACKEND_UNAVAILABLE, advice=advice)
