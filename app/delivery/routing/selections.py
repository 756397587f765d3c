"""Selections of subscriptions. Each filter is compiled once, and evaluated once per message."""

from collections.abc import Mapping
from typing import Any

from orjson import loads

from holdfast.delivery.messages.message import ORDINARY_PRIORITY, Message
from holdfast.delivery.routing.conditions import Fields
from holdfast.delivery.routing.filter_language import parse


class Filter:
    """A condition shared by subscriptions of any number of receivers."""

    __slots__ = ("_condition", "text", "uses")

    def __init__(self, text: str) -> None:
        """Compile the filter. Raises `FilterInvalid`."""
        self._condition = parse(text)
        self.text = text
        # The number of subscriptions that use it.
        self.uses = 0

    def passes(self, fields: Fields) -> bool:
        """Return whether a message with these fields passes the filter."""
        return self._condition(fields) is True


class Selection:
    """Which messages of its channels a subscription selects."""

    __slots__ = ("filter", "not_from")

    def __init__(self, filter: Filter | None, not_from: str) -> None:
        self.filter = filter
        # The publisher whose messages are left out; empty if none is.
        self.not_from = not_from


class Candidate:
    """A message that is tested by selections. Remembers the result of each filter."""

    __slots__ = ("_answers", "_fields")

    def __init__(
        self,
        *,
        channel: str,
        data: object,
        sender: str = "",
        priority: int = ORDINARY_PRIORITY,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self._fields = {
            "channel": channel,
            "data": data,
            "priority": priority,
            "properties": properties,
            "sender": sender,
        }
        self._answers: dict[Filter, bool] = {}

    @classmethod
    def of(cls, message: Message) -> "Candidate":
        """Return a message from a history as a candidate."""
        return cls(
            channel=message.channel,
            data=loads(message.wire).get("data"),
            sender=message.sender,
            priority=message.priority,
            properties=message.properties,
        )

    def suits(self, selection: Selection) -> bool:
        """Return whether the subscription selects the message."""
        if selection.not_from and selection.not_from == self._fields["sender"]:
            return False
        return selection.filter is None or self.passes(selection.filter)

    def has_asked(self, filter: Filter) -> bool:
        """Return whether the filter was evaluated before."""
        return filter in self._answers

    def passes(self, filter: Filter) -> bool:
        """Return whether the message passes the filter."""
        answer = self._answers.get(filter)
        if answer is None:
            answer = self._answers[filter] = filter.passes(self._fields)
        return answer


class Filters:
    """The filters of all subscriptions."""

    def __init__(self) -> None:
        self._by_text: dict[str, Filter] = {}

    def __len__(self) -> int:
        return len(self._by_text)

    def shared(self, filter: Filter) -> Filter:
        """Return the filter with the same text that subscriptions use, if there is one."""
        return self._by_text.get(filter.text, filter)

    def take(self, selection: Selection | None) -> None:
        """Count a subscription with this selection."""
        filter = None if selection is None else selection.filter
        if filter is not None:
            self._by_text[filter.text] = filter
            filter.uses += 1

    def release(self, selection: Selection | None) -> None:
        """Remove a subscription with this selection, and with the last one its filter."""
        filter = None if selection is None else selection.filter
        if filter is not None:
            filter.uses -= 1
            if not filter.uses:
                del self._by_text[filter.text]
