"""The QoS of a subscription: `ext.delivery` of its subscribe."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from holdfast.bayeux.wire.known_options import SAID_BY_RECEIVERS, QosInvalid, refuse_others
from holdfast.delivery.routing.filter_language import FilterInvalid
from holdfast.delivery.routing.selections import Filter, Selection

# `starts` reads history and initialUpdate.
_OPTIONS = SAID_BY_RECEIVERS | {
    "filter",
    "history",
    "initialUpdate",
    "local",
    "newestOnly",
    "notify",
    "oneway",
    "persistent",
    "responds",
}


@dataclass(frozen=True, slots=True)
class SubscribeQos:
    """The QoS of all subscriptions in one message."""

    # Whether messages are settled when written.
    oneway: bool = False
    # Whether the session receives messages that it published.
    local: bool = True
    filter: Filter | None = None
    # Whether the session is notified when the topic is erased.
    notify: bool = True
    # Whether only the newest of each channel's undelivered messages is handed over.
    newest_only: bool = False
    # Whether the session counts as a responder to the requests that it gets.
    responds: bool = True

    @classmethod
    def of(cls, asked: object, *, is_kept: bool) -> Self:
        """Read the requested QoS. `is_kept` says whether the session's subscriptions are stored.

        Raises `QosInvalid`.
        """
        if not isinstance(asked, Mapping):
            raise QosInvalid("delivery")
        refuse_others(asked, _OPTIONS)
        for name in ("oneway", "local", "newestOnly", "notify", "persistent", "responds"):
            if not isinstance(asked.get(name), bool | None):
                raise QosInvalid(name)
        if asked.get("persistent") not in (None, is_kept):
            raise QosInvalid("persistent")
        text = asked.get("filter")
        if not isinstance(text, str | None):
            raise QosInvalid("filter")
        try:
            return cls(
                asked.get("oneway") is True,
                asked.get("local") is not False,
                None if text is None else Filter(text),
                asked.get("notify") is not False,
                asked.get("newestOnly") is True,
                asked.get("responds") is not False,
            )
        except FilterInvalid as invalid:
            raise QosInvalid(f"filter ({invalid})") from invalid

    @property
    def is_selective(self) -> bool:
        """Whether the session does not receive all messages of the channel."""
        return self.filter is not None or not self.local

    @property
    def choice(self) -> str:
        """The option by which the session chooses among messages; empty if there is none."""
        if self.filter is not None:
            return "filter"
        if not self.local:
            return "local"
        return "newestOnly" if self.newest_only else ""

    def selection(self, session: str) -> Selection:
        """Return the selection for the session with this name."""
        return Selection(self.filter, "" if self.local else session)

    def to_json(self) -> Mapping[str, Any]:
        """Return the options in their stored form, without `responds`: see `SessionRecord`."""
        text = None if self.filter is None else self.filter.text
        return {
            "oneway": self.oneway,
            "local": self.local,
            "filter": text,
            "notify": self.notify,
            "newestOnly": self.newest_only,
        }


PLAIN = SubscribeQos()
