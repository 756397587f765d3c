"""The options of a publish and of a subscribe, as `ext` has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, TypedDict, Unpack

from holdfast.client.wire import Json

Destination = str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a publish: what it means, and how `ext.delivery` has it."""

    help: str
    # The name and the value there, unless they are the same here.
    wire: str | None = None
    write: Callable[[Any], object] | None = None
    # How `holdfast publish` takes it; without this, it has it in a form of its own or not at all.
    in_words: "InWords | None" = None


@dataclass(frozen=True, slots=True)
class InWords:
    """An option of the command line: the word for its value, and the range of numbers."""

    value: str | None = None
    least: float | None = None
    most: float | None = None
    # What its help says besides.
    more: str = ""


_SECONDS = InWords("SECONDS", least=0.001)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _lifetime(seconds: float) -> Json:
    return {"lifeTime": _ms(seconds)}


def _addressed(destinations: Sequence[Destination]) -> list[Json]:
    return [{"name": each} if isinstance(each, str) else dict(each) for each in destinations]


class PublishOptions(TypedDict, total=False):
    """The options of a publish: the client and `holdfast publish` derive from this table."""

    key: Annotated[
        str | None,
        Option(
            "Publish key: of several messages with the same key, only the first is delivered.",
            in_words=InWords(more=" May have placeholders."),
        ),
    ]
    priority: Annotated[
        int | None,
        Option(
            "0 to 9: higher ranks overtake lower ones that wait; default: 5.",
            in_words=InWords("RANK", 0, 9),
        ),
    ]
    persistent: Annotated[
        bool | None,
        Option("Whether the messages survive a restart of the server.", in_words=InWords()),
    ]
    lifetime_s: Annotated[
        float | None,
        Option(
            "How long the messages are worth delivering; default: without end.",
            wire="expiration",
            write=_lifetime,
            in_words=_SECONDS,
        ),
    ]
    delay_s: Annotated[
        float | None,
        Option(
            "Deliver the messages later, after this time.",
            wire="delay",
            write=_ms,
            in_words=_SECONDS,
        ),
    ]
    properties: Annotated[
        Mapping[str, Any] | None, Option("Names and values for receivers.", write=dict)
    ]
    destinations: Annotated[
        Sequence[Destination] | None,
        Option("Sessions or subjects, such as `joe/1` or `joe`, to address.", write=_addressed),
    ]
    # Further options of `ext.delivery`.
    qos: Mapping[str, Any] | None


# By name, with the type of the value.
OPTIONS: dict[str, tuple[Any, Option]] = {
    name: (hint.__origin__, hint.__metadata__[0])
    for name, hint in PublishOptions.__annotations__.items()
    if hasattr(hint, "__metadata__")
}

# Services execute each message; point-to-point only routes it.
_SERVICES, _PTP = "/service/", "/service/ptp"


def takes_keys(channel: str) -> bool:
    """Return whether publishes to a channel may have a key."""
    return channel == _PTP or not channel.startswith(_SERVICES)


def publish_ext(*, mime: str | None = None, **options: Unpack[PublishOptions]) -> Json:
    """Return the `ext` of a publish; empty without options, of which an empty `qos` is one."""
    qos = options.pop("qos", None)
    given: Json = {}
    for name, value in options.items():
        if name not in OPTIONS:
            meant = "".join(
                f": did you mean {each}?" for each in get_close_matches(name, OPTIONS, 1)
            )
            raise TypeError(f"a publish has no option {name!r}{meant}")
        _, option = OPTIONS[name]
        if value is not None:
            given[option.wire or name] = value if option.write is None else option.write(value)
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
