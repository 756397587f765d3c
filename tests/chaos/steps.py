"""An extension that sends a signal to a process when a server has reached a step of a hand-over.

A file in the folder that `VARIABLE` names is called like the step, and says whom to send what: to
process 0, which is the server itself, by default.
"""

import inspect
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.bayeux.api import ServerApi
from holdfast.bayeux.leaving.taking import Taking
from holdfast.compose.journal import RunBooks
from holdfast.compose.running_server import RunningServer
from holdfast.compose.storage import Storage
from holdfast.compose.supervised import Supervised
from holdfast.store.format.scripts import OFFER
from holdfast.store.given_slices import GivenSlices
from holdfast.store.links.reader import Reader
from holdfast.store.links.script import Script
from holdfast.store.store import Store
from holdfast.supervisor.control import Say
from holdfast.web.doors.handing_over import HandOver
from holdfast.web.doors.leaving import Leaving
from holdfast.web.front.listener import Listener

VARIABLE = "HAND_OVER_STEPS"
# Names one of the broken builds.
BROKEN = "HAND_OVER_BROKEN"
_READY = "pid of the server"
_TAKEN = "{}, taken by {}"


class Step(NamedTuple):
    """Where in the code a step is: before or behind a call with certain arguments."""

    owner: type
    call: str
    is_before: bool = False
    # Of the arguments behind `self`.
    when: Callable[..., bool] = lambda *_, **__: True


def _said(word: Say) -> Callable[..., bool]:
    return lambda said, *_, **__: said is word


# In the order in which a server that leaves takes them.
OF_FORMER = {
    "told to leave": Step(RunningServer, "leave", is_before=True),
    "paused": Step(Leaving, "pause"),
    "settled": Step(RunningServer, "_settle"),
    "given half written": Step(GivenSlices, "_save", when=lambda fields: bool(fields.get("0"))),
    "given complete": Step(Storage, "write_given"),
    "journal closed": Step(RunBooks, "close"),
    "store given": Step(Store, "give"),
    "valkey let go": Step(Storage, "give"),
    "left": Step(Supervised, "say", when=_said(Say.LEFT)),
    "told to go": Step(RunningServer, "hand_over", is_before=True),
    "half handed over": Step(HandOver, "_hand_over"),
    "handed over": Step(RunningServer, "hand_over"),
}
# And a successor.
OF_SUCCESSOR = {
    "assembled": Step(Storage, "check", is_before=True),
    "checked": Step(Storage, "check"),
    "prepared": Step(Supervised, "say", when=_said(Say.PREPARED)),
    "told to open": Step(Supervised, "prepared"),
    "opened": Step(Store, "open"),
    "given read": Step(Storage, "open"),
    "half loaded": Step(Taking, "rest", is_before=True),
    "loaded": Step(Storage, "load"),
    "given removed": Step(Storage, "remove_given"),
    "listening": Step(Listener, "open"),
    "ready": Step(Supervised, "say", when=_said(Say.READY)),
}
STEPS = OF_FORMER | OF_SUCCESSOR


def _is_offer(script: Script, _: object, args: Sequence[object]) -> bool:
    return script is OFFER and args[1] != ""


def _ends_offer(script: Script, _: object, args: Sequence[object]) -> bool:
    return script is OFFER and args[1] == ""


# A server that gives its shard to another host takes some of a former one, and these.
_LEAVING = [*OF_FORMER][: [*OF_FORMER].index("left")]
_HANDING = ("half handed over", "handed over")
OF_GIVER = {
    **{name: OF_FORMER[name] for name in _LEAVING},
    "offering": Step(Storage, "offer_to", is_before=True),
    "offered": Step(Reader, "run", when=_is_offer),
    "offer ends": Step(Reader, "run", is_before=True, when=_ends_offer),
    "given away": Step(Storage, "offer_to"),
    "known to be given": Step(Supervised, "fenced"),
    **{name: OF_FORMER[name] for name in _HANDING},
}
# The one that takes it has no former server on its host, and knows the steps once it has opened.
OF_TAKER = {
    name: OF_SUCCESSOR[name]
    for name in ("half loaded", "loaded", "given removed", "listening", "ready")
}
_ALL = STEPS | OF_GIVER


def arm(folder: Path, step: str, number: signal.Signals, pid: int = 0) -> None:
    """Have a signal sent to a process, once."""
    assert step in _ALL
    folder.mkdir(exist_ok=True)
    (folder / step).write_text(f"{number.value} {pid}")


def is_armed(folder: Path, step: str) -> bool:
    return (folder / step).exists()


def disarm(folder: Path, step: str) -> None:
    """Send no signal at this step, and forget who has reached it."""
    for each in (folder / step, *folder.glob(_TAKEN.format(step, "*"))):
        each.unlink(missing_ok=True)


def taken_by(folder: Path, step: str) -> int | None:
    """The process that has reached a step since it was disarmed last, if one has."""
    found = folder.glob(_TAKEN.format(step, "*"))
    return next((int(each.name.rpartition(" ")[2]) for each in found), None)


def pid_of_server(folder: Path) -> int:
    """The pid of the server that was ready last."""
    return int((folder / _READY).read_text())


def install(_: ServerApi) -> None:
    """Break this process in the way that a variable names, and mark the steps in it."""
    folder = Path(os.environ[VARIABLE])
    folder.mkdir(exist_ok=True)
    if BROKEN in os.environ:
        from tests.chaos.broken.builds import BUILDS

        BUILDS[os.environ[BROKEN]].damage()
    _note_pid(folder / _READY)
    for name, step in _ALL.items():
        _mark(folder / name, step)


def _note_pid(file: Path) -> None:
    say = Supervised.say

    def noting(self: Supervised, what: Say, *descriptors: int, **fields: object) -> None:
        if what is Say.READY:
            file.write_text(str(os.getpid()))
        say(self, what, *descriptors, **fields)

    Supervised.say = noting  # type: ignore[method-assign]


def _mark(order: Path, step: Step) -> None:
    whole = getattr(step.owner, step.call)

    def reach(*args: Any, **named: Any) -> None:
        if not order.exists() or not step.when(*args, **named):
            return
        taken = order.with_name(_TAKEN.format(order.name, os.getpid()))
        try:
            # Of several workers, one does it.
            order.rename(taken)
        except FileNotFoundError:
            return
        number, pid = map(int, taken.read_text().split())
        os.kill(pid or os.getpid(), number)

    def marked(self: Any, *args: Any, **named: Any) -> Any:
        if step.is_before:
            reach(*args, **named)
        found = whole(self, *args, **named)
        if not step.is_before:
            reach(*args, **named)
        return found

    async def marked_async(self: Any, *args: Any, **named: Any) -> Any:
        if step.is_before:
            reach(*args, **named)
        found = await whole(self, *args, **named)
        if not step.is_before:
            reach(*args, **named)
        return found

    setattr(step.owner, step.call, marked_async if inspect.iscoroutinefunction(whole) else marked)
