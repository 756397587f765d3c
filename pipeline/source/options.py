"""The options of Spark's data source `holdfast_journal`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from os import cpu_count

from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.source.outline import Position
from holdfast.pipeline.source.pace import ENOUGH

NAME = "holdfast_journal"
EARLIEST, LATEST = "earliest", "latest"
_MOST_EVENTS = 5_000_000


class Form(StrEnum):
    """What a row of the source is."""

    EVENTS = "events"
    RANGES = "ranges"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a reader, checked."""

    url: str
    namespace: str
    form: Form
    fails_on_loss: bool
    most: int
    # A stream waits for this many frames, but no longer than this time.
    enough: int
    delay_s: float
    pieces: int
    starting: str
    ending: str

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "SourceOptions":
        """Check what a user has given.

        Raises:
            PipelineFailed: An option is missing or wrong; the text says which, and what it may be.
        """
        options = {name.lower(): value for name, value in given.items()}
        unknown = options.keys() - _KNOWN
        if unknown:
            raise PipelineFailed(
                f"{NAME} has no option {min(unknown)}; it has {', '.join(_KNOWN.values())}"
            )
        url = options.get("url", options.get("path", ""))
        if not url:
            raise PipelineFailed(
                f'{NAME} needs the store of the server: option("url", "redis://HOST:6379/0"), or '
                "unix:///PATH/OF/DATA/store.sock next to a server with a store of its own"
            )
        form = options.get("form", Form.EVENTS)
        if form not in [*Form]:
            raise PipelineFailed(f"{NAME} has no form {form}; it has {' and '.join(Form)}")
        return cls(
            url,
            options.get("namespace", "holdfast"),
            Form(form),
            _is_so(options, "failondataloss", default=True),
            _number(options, "maxeventspertrigger", _MOST_EVENTS),
            _number(options, "minframespertrigger", ENOUGH),
            _seconds(options, "maxtriggerdelay"),
            _number(options, "partitions", cpu_count() or 1),
            _offset_text(options, "startingoffsets", EARLIEST),
            _offset_text(options, "endingoffsets", LATEST),
        )


_KNOWN = {
    each.lower(): each
    for each in (
        "url",
        "path",
        "namespace",
        "form",
        "failOnDataLoss",
        "maxEventsPerTrigger",
        "minFramesPerTrigger",
        "maxTriggerDelay",
        "partitions",
        "startingOffsets",
        "endingOffsets",
    )
}


def _is_so(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = options.get(name, str(default)).lower()
    if value not in ("true", "false"):
        raise PipelineFailed(f"the option {_KNOWN[name]} is true or false, not {value}")
    return value == "true"


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    value = options.get(name, str(default))
    if not value.isdecimal() or not int(value):
        raise PipelineFailed(f"the option {_KNOWN[name]} is a positive number, not {value}")
    return int(value)


def _seconds(options: Mapping[str, str], name: str) -> float:
    value = options.get(name, "0")
    try:
        seconds = float(value.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < inf:
        raise PipelineFailed(f"the option {_KNOWN[name]} is a number of seconds, not {value}")
    return seconds


def _offset_text(options: Mapping[str, str], name: str, default: str) -> str:
    value = options.get(name, default)
    if value not in (EARLIEST, LATEST):
        try:
            for given in json.loads(value).values():
                Position.of(given)
        except (ValueError, AttributeError, TypeError, KeyError):
            raise PipelineFailed(
                f"the option {_KNOWN[name]} is {EARLIEST}, {LATEST}, or the JSON of an offset, "
                f"as in a query's progress, not {value}"
            ) from None
    return value
