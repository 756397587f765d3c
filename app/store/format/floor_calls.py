"""The call that stores the floors of histories."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import NEWEST
from holdfast.store.format.records import with_sum
from holdfast.store.format.scripts import PUT, ScriptCall

if TYPE_CHECKING:
    from holdfast.store.links.resp import Word


def save_floors(keys: RedisKeys, floors: Iterable[tuple[str, int]]) -> ScriptCall:
    """Save the floors of these channels' histories. Zero removes one."""
    args: list[Word] = []
    for channel, floor in floors:
        args += (channel, with_sum(channel, b"%d" % floor, NEWEST) if floor else b"")
    return ScriptCall(PUT, [keys.meta, keys.floors], args)
