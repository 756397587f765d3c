"""The options of a publish and of a subscribe, as `ext` has them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from holdfast.client.wire import Json

Destination = str | Mapping[str, Any]


class PublishOptions(TypedDict, total=False):
    """The options of a publish; `Client.publish` says what they mean."""

    key: str | None
    priority: int | None
    persistent: bool | None
    lifetime_s: float | None
    delay_s: float | None
    properties: Mapping[str, Any] | None
    destinations: Sequence[Destination] | None
    qos: Mapping[str, Any] | None


# Services execute each message; point-to-point only routes it.
_SERVICES, _PTP = "/service/", "/service/ptp"


def takes_keys(channel: str) -> bool:
    """Return whether publishes to a channel may have a key."""
    return channel == _PTP or not channel.startswith(_SERVICES)


def publish_ext(
    *,
    key: str | None = None,
    priority: int | None = None,
    persistent: bool | None = None,
    lifetime_s: float | None = None,
    delay_s: float | None = None,
    properties: Mapping[str, Any] | None = None,
    mime: str | None = None,
    destinations: Sequence[Destination] | None = None,
    qos: Mapping[str, Any] | None = None,
) -> Json:
    """Return the `ext` of a publish; empty without options, of which an empty `qos` is one."""
    given: Json = {"key": key, "priority": priority, "persistent": persistent}
    given["properties"] = None if properties is None else dict(properties)
    if lifetime_s is not None:
        given["expiration"] = {"lifeTime": round(lifetime_s * 1000)}
    if delay_s is not None:
        given["delay"] = round(delay_s * 1000)
    if destinations is not None:
        given["destinations"] = [
            {"name": each} if isinstance(each, str) else dict(each) for each in destinations
        ]
    ext = _delivery(given, qos)
    return ext if mime is None else {**ext, "mime": mime}


def subscribe_ext(
    *,
    filter: str | None,
    history: int | None,
    replay: object,
    qos: Mapping[str, Any] | None,
) -> Json:
    """Return the `ext` of a subscribe; empty without options."""
    given: Json = {"filter": filter}
    if history is not None:
        given["history"] = {"numEntries": history, "newestFirst": False}
    ext = _delivery(given, qos)
    if replay is not None:
        ext["replay"] = replay
    return ext


def _delivery(given: Json, qos: Mapping[str, Any] | None) -> Json:
    options = {name: value for name, value in given.items() if value is not None} | {**(qos or {})}
    return {} if qos is None and not options else {"delivery": options}
