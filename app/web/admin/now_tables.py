"""The lists of a reading as tables: what commands and the console show, in this order."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, get_args

from pydantic import Field

from holdfast.units import Form
from holdfast.web.admin import now_views as views
from holdfast.web.admin.alerts import RaisedAlert
from holdfast.web.admin.session_views import HeldChannel
from holdfast.web.admin.views import TableColumn

# How a field is written, whichever list has it.
_FORMS = {
    "receiver": Form.RECEIVER,
    "channel": Form.CHANNEL,
    "state": Form.STATE,
    "hold": Form.HOLD,
    "held": Form.FLAG,
    "oldest_id": Form.MESSAGE,
    "code": Form.CODE,
    **dict.fromkeys(
        ("alert", "reason", "next", "who", "shard", "host", "pid", "last_end", "failure"), Form.TEXT
    ),
    "store": Form.STATE,
    **dict.fromkeys(("since", "oldest", "failed"), Form.TIME),
    **dict.fromkeys(("waiting", "in_flight", "in_work", "unassigned"), Form.COUNT),
    **dict.fromkeys(("receivers", "attempts", "letters"), Form.COUNT),
    **dict.fromkeys(("restarts", "sessions", "links", "open"), Form.COUNT),
    "behind_ms": Form.MS,
    "bytes": Form.BYTES,
}
_QUEUE = "waiting in_flight bytes oldest oldest_id"
# Each list in the order of its urgency: its title, its items and their fields.
_LISTS: dict[str, tuple[str, type, str]] = {
    "alerts": ("Alerts", RaisedAlert, "alert since reason next"),
    "shards": (
        "Shards",
        views.ShardNow,
        "shard host state since restarts last_end pid sessions store links behind_ms",
    ),
    "backend": (
        "Backend that decides about clients",
        views.BackendNow,
        "shard state since waiting open failure failed",
    ),
    "held_back": ("Sessions that are held back", views.ReceiverNow, f"receiver {_QUEUE} hold"),
    "held_channels": (
        "Channels that are held back",
        HeldChannel,
        "channel since who reason attempts",
    ),
    "unreachable": (
        "Sessions that are POLLING or DEAD",
        views.ReceiverNow,
        f"receiver state since {_QUEUE}",
    ),
    "oldest_receivers": (
        "Receivers with the oldest entries",
        views.ReceiverNow,
        f"receiver state {_QUEUE}",
    ),
    "receivers": ("Receivers with the most entries", views.ReceiverNow, f"receiver state {_QUEUE}"),
    "channels": (
        "Channels with the most entries",
        views.ChannelNow,
        "channel waiting in_flight receivers held",
    ),
    "work_queues": (
        "Work queues",
        views.WorkNow,
        "channel waiting unassigned oldest in_work since receivers",
    ),
    "workers": ("Workers", views.WorkerNow, "channel receiver waiting oldest in_work since"),
    "letters": ("Dead letters of the last hour", views.CodeNow, "code letters"),
}


@dataclass(frozen=True, slots=True)
class NowTable:
    """One list of a reading as a table."""

    name: Annotated[str, Field(description="The list: a field of the reading.")]
    title: str
    columns: list[TableColumn]


@cache
def tables(*, has_hosts: bool = True) -> list[NowTable]:
    """Return the tables in their order. One machine needs no column for it."""
    return [
        NowTable(name, title, [*_columns(kind, _names(shown, has_hosts=has_hosts))])
        for name, (title, kind, shown) in _LISTS.items()
    ]


def _names(shown: str, *, has_hosts: bool) -> list[str]:
    return [each for each in shown.split() if has_hosts or each != "host"]


def _columns(kind: type, names: list[str]) -> Iterator[TableColumn]:
    """Yield the columns; they mean what the API says of the fields."""
    hints = {each.name: each.type for each in fields(kind)}
    for name in names:
        is_work = kind in (views.WorkNow, views.WorkerNow) and name == "channel"
        form = Form.WORK if is_work else _FORMS[name]
        yield TableColumn(name, form, get_args(hints[name])[-1].description)
