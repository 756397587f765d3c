"""Selections of subscriptions: each filter is compiled once, and asked once for each message."""

from collections.abc import Mapping
from typing import Any

from orjson import loads

from holdfast.delivery.messages.message import ORDINARY_PRIORITY, Message
from holdfast.delivery.routing.conditions import Fields
from holdfast.delivery.routing.filter_language import parse


class Filter:
    """A condition that subscriptions of any number of receivers have in common."""

    __slots__ = ("_condition", "text", "uses")

    def __init__(self, text: str) -> None:
        """Compile the filter. Raises `FilterInvalid`."""
        self._condition = parse(text)
        self.text = text
        # The subscriptions that have it.
        self.uses = 0

    def passes(self, fields: Fields) -> bool:
        """Return whether a message with these fields fulfils the condition."""
        return self._condition(fields) is True


class Selection:
    """The messages of its channels that a subscription selects."""

    __slots__ = ("filter", "not_from")

    def __init__(self, filter: Filter | None, not_from: str) -> None:
        self.filter = filter
        # The publisher whose messages are left out; empty if none is.
        self.not_from = not_from


class Candidate:
    """A message that selections are asked about; remembers what each filter said."""

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
        """Return a kept message as a candidate."""
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
        """Return whether the filter was asked before."""
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
        """Return the filter with the same text that subscriptions have, if there is one."""
        return self._by_text.get(filter.text, filter)

    def take(self, selection: Selection | None) -> None:
        """Count a subscription with this selection."""
        filter = None if selection is None else selection.filter
        if filter is not None:
            self._by_text[filter.text] = filter
            filter.uses += 1

    def release(self, selection: Selection | None) -> None:
        """Forget a subscription with this selection, and the filter with its last one."""
        filter = None if selection is None else selection.filter
        if filter is not None:
            filter.uses -= 1
            if not filter.uses:
                del self._by_text[filter.text]
