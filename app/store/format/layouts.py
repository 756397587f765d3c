"""The layouts of a store, and what servers write while a store is in an earlier one.

A store stays in the layout in which it was found, until an operator finishes the upgrade. Until
then, servers write what releases that read this layout keep: going back is a restart with the older
release. A new store begins in the newest layout.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple


@dataclass(frozen=True, slots=True)
class WrittenForm:
    """What servers write, as far as it depends on the layout. The defaults are the newest one's."""

    # Whether the value of a publish key contains its time. If not, the times are in another hash.
    has_key_times: bool = True
    # Whether records of sessions contain their outstanding requests, too.
    has_requests_in_sessions: bool = False
    # Whether records have checksums. Those of messages do not repeat the channel of the event, and
    # one for a single receiver has its name, and needs no set.
    is_checked: bool = True
    # Whether it is stored from where on histories lack nothing.
    has_floors: bool = True


NEWEST: Final = WrittenForm()


class Layout(NamedTuple):
    """One layout."""

    number: int
    # The releases before this one that read it, for operators; empty if there are none.
    releases: str
    # What it changed, for operators.
    change: str
    # What servers write otherwise while a store is in an earlier layout.
    before: Mapping[str, Any]


# All layouts that this release reads, the oldest first. Each change that an older release would not
# preserve needs a new one.
LAYOUTS: Final = (
    Layout(2, "0.2 and 0.3", "", {}),
    Layout(3, "", "publish keys are stored with their times", {"has_key_times": False}),
    Layout(
        4,
        "",
        "outstanding requests are stored apart from sessions",
        {"has_requests_in_sessions": True},
    ),
    Layout(
        5,
        "",
        "records have checksums, a message for one receiver its name, and histories their floors",
        {"is_checked": False, "has_floors": False},
    ),
)
OLDEST_LAYOUT: Final = LAYOUTS[0].number
LAYOUT: Final = LAYOUTS[-1].number


class CurrentLayout:
    """The layout in which the open store is, and what is written in it."""

    def __init__(self) -> None:
        self.enter(LAYOUT)

    def enter(self, number: int) -> None:
        """Record that the store is in this layout."""
        self.number, self.form = number, written_form(number)


def written_form(layout: int) -> WrittenForm:
    """Return what servers write in a store that is in this layout."""
    form = NEWEST
    for later in later_than(layout):
        form = replace(form, **later.before)
    return form


def later_than(layout: int) -> tuple[Layout, ...]:
    """Return the layouts that the store gets when the upgrade is finished, the oldest first."""
    return tuple(each for each in LAYOUTS if each.number > layout)


def readers_of(layout: int) -> str:
    """Return the earlier releases that read a store in this layout; empty if there are none."""
    return next((each.releases for each in LAYOUTS if each.number == layout), "")
