"""The QoS of a subscribe: its `ext.delivery`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from holdfast.bayeux.qos import SAID_BY_RECEIVERS, QosInvalid, refuse_others

_OPTIONS = SAID_BY_RECEIVERS | {"oneway", "persistent", "notify"}
# Options that are not supported are accepted with the value that describes the usual behaviour.
_NOT_OFFERED = {
    "history": None,
    "filter": None,
    "initialUpdate": False,
    "local": True,
    "newestOnly": False,
}


@dataclass(frozen=True, slots=True)
class SubscribeQos:
    """The QoS of all subscriptions of one message."""

    oneway: bool = False

    @classmethod
    def of(cls, asked: object, *, is_kept: bool) -> Self:
        """Read the requested QoS; `is_kept` says whether the session's subscriptions are stored.

        Raises `QosInvalid`.
        """
        if not isinstance(asked, Mapping):
            raise QosInvalid("delivery")
        refuse_others(asked, _OPTIONS, _NOT_OFFERED)
        # Nothing is erased, so there is nothing to notify of.
        for name in ("oneway", "notify", "persistent"):
            if not isinstance(asked.get(name), bool | None):
                raise QosInvalid(name)
        if asked.get("persistent") not in (None, is_kept):
            raise QosInvalid("persistent")
        return cls(asked.get("oneway") is True)


PLAIN = SubscribeQos()
