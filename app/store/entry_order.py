"""The order in which the entries of a queue are loaded."""

from holdfast.delivery.basics.node import shard_of
from holdfast.delivery.messages.arrival_numbers import arrival_of
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import rightful_place


def line_up(entries: list[tuple[Mark, Message]]) -> None:
    """Sort entries: first returned and in-flight ones, then waiting ones by priority and age.

    A message of another shard is as old as its arrival: its id is by another clock.
    """
    entries.sort(key=_place)
    if any(arrival_of(message) is not None for _, message in entries):
        _line_up_by_shard(entries)


def _place(entry: tuple[Mark, Message]) -> tuple[bool, int, int, int]:
    mark, message = entry
    position = mark.position or mark.seq
    return (position == 0, position, *rightful_place(message))


def _line_up_by_shard(entries: list[tuple[Mark, Message]]) -> None:
    """Let waiting messages with the same priority and shard stand in the order of their ids.

    If the deployment was divided otherwise, their arrivals may be by clocks of several shards.
    """
    places: dict[tuple[int, int], list[int]] = {}
    for place, (mark, message) in enumerate(entries):
        if not (mark.position or mark.seq):
            kind = message.priority, shard_of(message.id)
            places.setdefault(kind, []).append(place)
    for its in places.values():
        ordered = sorted([entries[place] for place in its], key=_by_id)
        for place, entry in zip(its, ordered, strict=True):
            entries[place] = entry


def _by_id(entry: tuple[Mark, Message]) -> int:
    return entry[0].id
