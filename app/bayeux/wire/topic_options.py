"""The configuration of a topic that a publisher asks for: `ext.delivery.topic`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from holdfast.bayeux.wire.known_options import LONGEST_MS, QosInvalid
from holdfast.delivery.basics.json_text import whole
from holdfast.delivery.messages.keeping import HISTORY_BYTES, MOST_ENTRIES, HistoryDepth
from holdfast.delivery.topics.configured import MOST_BYTES, TopicConfig

_OPTIONS = {"destroyDelay", "history", "readonly"}


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """The options that a publisher sets for a topic. None leaves an option unchanged."""

    destroy_delay_ms: int | None = None
    is_readonly: bool | None = None
    depth: HistoryDepth | None = None

    @classmethod
    def of(cls, asked: object) -> Self:
        """Read the options. Raises `QosInvalid`."""
        if not isinstance(asked, Mapping) or asked.keys() - _OPTIONS:
            raise QosInvalid("topic")
        delay_ms = asked.get("destroyDelay")
        if delay_ms is not None:
            delay_ms = whole(delay_ms)
            if delay_ms is None or not -1 <= delay_ms <= LONGEST_MS:
                raise QosInvalid("topic.destroyDelay")
        is_readonly = asked.get("readonly")
        if is_readonly is not None and type(is_readonly) is not bool:
            raise QosInvalid("topic.readonly")
        return cls(delay_ms, is_readonly, _depth(asked.get("history")))

    def to_json(self) -> dict[str, Any]:
        """Undo `of`."""
        asked: dict[str, Any] = {
            "destroyDelay": self.destroy_delay_ms,
            "readonly": self.is_readonly,
        }
        if self.depth is not None:
            asked["history"] = {"maxEntries": self.depth.entries, "maxBytes": self.depth.bytes}
        return asked

    def over(self, config: TopicConfig) -> TopicConfig:
        """Return the configuration, changed by these options."""
        return TopicConfig(
            config.destroy_delay_ms if self.destroy_delay_ms is None else self.destroy_delay_ms,
            config.is_readonly if self.is_readonly is None else self.is_readonly,
            config.depth if self.depth is None else self.depth,
        )


def _depth(asked: object) -> HistoryDepth | None:
    if asked is None:
        return None
    if not isinstance(asked, Mapping) or asked.keys() - {"maxBytes", "maxEntries"}:
        raise QosInvalid("topic.history")
    entries, size = whole(asked.get("maxEntries")), whole(asked.get("maxBytes", HISTORY_BYTES))
    if entries is None or not 0 <= entries <= MOST_ENTRIES:
        raise QosInvalid("topic.history.maxEntries")
    if size is None or not 1 <= size <= MOST_BYTES:
        raise QosInvalid("topic.history.maxBytes")
    return HistoryDepth(entries, size)
