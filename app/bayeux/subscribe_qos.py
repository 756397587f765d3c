"""What a subscriber asks for: `ext.delivery` of a subscribe."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from app.bayeux.qos import SAID_BY_RECEIVERS, QosInvalid, refuse_others

_OPTIONS = SAID_BY_RECEIVERS | {"oneway", "persistent", "notify"}
# With this value an option that is not offered asks for what happens anyway.
_NOT_OFFERED = {
    "history": None,
    "filter": None,
    "initialUpdate": False,
    "local": True,
    "newestOnly": False,
}


@dataclass(frozen=True, slots=True)
class SubscribeQos:
    """What holds for the subscriptions of one message."""

    oneway: bool = False

    @classmethod
    def of(cls, asked: object, *, is_kept: bool) -> Self:
        """What was asked for, checked; `is_kept` says what becomes of the session's subscriptions.

        Raises `QosInvalid`.
        """
        if not isinstance(asked, Mapping):
            raise QosInvalid("delivery")
        refuse_others(asked, _OPTIONS, _NOT_OFFERED)
        # Nothing is erased here, so there is nothing to notify of.
        for name in ("oneway", "notify", "persistent"):
            if not isinstance(asked.get(name), bool | None):
                raise QosInvalid(name)
        if asked.get("persistent") not in (None, is_kept):
            raise QosInvalid("persistent")
        return cls(asked.get("oneway") is True)


PLAIN = SubscribeQos()
