"""Refuses what needs one shard that decides, while a server has other shards beside it."""

from typing import Final

from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.wire.reserved import not_supported

# Services that know only what is in their shard.
_LOCAL: Final = frozenset(("/service/presence",))


def refuse_options(qos: Qos, *, has_homes: bool) -> None:
    """Refuse a publish whose options a single shard cannot carry out. Raises `Refused`.

    `has_homes` says whether other shards can be sent letters.
    """
    asked = {
        "ext.replyTo": qos.request is not None,
        "ext.delivery.destinations": bool(qos.destinations) and not has_homes,
        "ext.delivery.refuseHeld": qos.refuse_held,
        "ext.delivery.administrative": qos.is_administrative,
        "ext.delivery.topic": qos.topic is not None,
        "ext.delivery.forceUpdate": not qos.force_update,
    }
    for name, is_asked in asked.items():
        if is_asked:
            raise not_supported(name)


def refuse_call(service: str, *, is_known: bool) -> None:
    """Refuse to call a service that may be a client at another shard, or that knows only this one.

    Raises `Refused`.
    """
    if not is_known or service in _LOCAL:
        raise not_supported(service)
