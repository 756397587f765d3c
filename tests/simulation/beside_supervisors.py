"""What stands for the real system where supervised servers and their supervisors ask for it."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from holdfast import compose, logs
from holdfast.cli import serve
from holdfast.compose import (
    claiming,
    data_directory,
    running_server,
    shardless_door,
    standing_in,
    supervised,
)
from holdfast.compose.placement import Placement
from holdfast.compose.running_server import RunningServer
from holdfast.compose.shardless_door import RunningDoor, running_door
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.supervisor import claimed, replacing, state, watching
from holdfast.supervisor import running as supervisor_running
from holdfast.supervisor.control import CONTROL, CONTROL_FILE
from holdfast.web.doors import adoption
from tests.simulation.between_hosts import linking
from tests.simulation.descriptors import Descriptors, Sockets
from tests.simulation.embedded import embedding
from tests.simulation.environment import running_process
from tests.simulation.files import Files
from tests.simulation.holdings import Handle, Inbox
from tests.simulation.process import Process, Running
from tests.simulation.shared_sockets import Bound, SharedSocket
from tests.simulation.supervised import Gone, Worker, staying


@asynccontextmanager
async def _running(
    _: Settings, succession: Succession, placement: Placement
) -> AsyncIterator[RunningServer]:
    process = running_process()
    assert isinstance(process, Worker)
    async with process.unit.running(process, succession, placement) as server:
        yield server


@asynccontextmanager
async def _running_door(*given: Any) -> AsyncIterator[RunningDoor]:
    process = running_process()
    assert isinstance(process, Worker)
    async with staying(process, running_door(*given)) as door:
        yield door


def _leave_at_once() -> None:
    raise Gone


def _log(level: str, text: str) -> None:
    process = running_process()
    assert isinstance(process, Running)
    process.world.note(process.name, f"{level}: {text}")


def _complain(text: str, *_: object) -> None:
    process = running_process()
    assert isinstance(process, Worker)
    # Where the data are differs in each run.
    known = text.replace(str(process.unit.data.parent), "")
    process.world.note(process.name, f"cannot start: {known}")


def _welcome(*_: object, **__: object) -> None:
    process = running_process()
    assert isinstance(process, Process)
    process.world.coverage.mark("a supervisor has welcomed its operator")


def _nothing(*_: object, **__: object) -> None:
    """Instead of what concerns the real process."""


def _inherited(name: str, succession: Succession) -> Sequence[SharedSocket]:
    found: list[SharedSocket] = []
    while (handle := succession.descriptors.get(f"{name}.{len(found)}")) is not None:
        assert isinstance(handle, Handle)
        found.append(SharedSocket(handle.thing.handle()))
    return found


def inherited_by(name: str, succession: Succession) -> Sequence[SharedSocket] | None:
    """Return the sockets that a supervised server inherits; None if it has no supervisor."""
    return _inherited(name, succession) if isinstance(running_process(), Worker) else None


def link_of(place: tuple[str, int], handle: int | None) -> SharedSocket:
    """Return the socket for links, which an earlier server may have had."""
    process = running_process()
    assert isinstance(process, Worker)
    if isinstance(handle, Handle):
        return SharedSocket(handle.thing.handle())
    network = process.world.network
    if (before := network.held(*place)) is not None:
        # The file of the socket is replaced.
        network.forget(before)
    return SharedSocket(Bound(network.listen(*place)).handle())


def _listen_for_commands(data: Path, succession: Succession) -> None:
    found = succession.descriptors.get(CONTROL)
    if found is not None:
        succession.keep(CONTROL, found)
        return
    process = running_process()
    if isinstance(process, Worker):
        inbox = process.unit.commands[str(data / CONTROL_FILE)] = Inbox()
        handle = inbox.handle()
        succession.keep(CONTROL, handle)
        handle.close()


class _ForCommands:
    """A socket from which a command would come."""

    def __enter__(self) -> "_ForCommands":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def connect(self, path: str) -> None:
        process = running_process()
        commands = process.unit.commands if isinstance(process, Worker) else {}
        if (inbox := commands.get(path)) is None:
            raise FileNotFoundError(path)
        if not inbox.holders:
            raise ConnectionRefusedError(path)


@contextmanager
def supervising() -> Iterator[None]:
    """Let supervised servers and their supervisors run in simulated processes."""
    with ExitStack() as stack:
        for owner, name, replaced in _REPLACED:
            stack.enter_context(patch.object(owner, name, replaced))
        stack.enter_context(embedding())
        stack.enter_context(linking())
        yield


_REPLACED: tuple[tuple[object, str, object], ...] = (
    (serve, "running", _running),
    (serve, "_leave_at_once", _leave_at_once),
    (serve, "complain", _complain),
    (serve, "_welcome", _welcome),
    (logs, "configure", _nothing),
    (supervised, "os", Descriptors),
    (supervised, "socket", Sockets),
    (data_directory, "os", Files),
    (data_directory, "socket_for_commands", _ForCommands),
    (compose, "listen_for_commands", _listen_for_commands),
    (claiming, "listen_for_commands", _listen_for_commands),
    (compose, "socket", Sockets),
    (running_server, "socket", Sockets),
    (shardless_door, "running_door", _running_door),
    (shardless_door, "socket", Sockets),
    (standing_in, "inherited", _inherited),
    (adoption, "socket", Sockets),
    (supervisor_running, "log", _log),
    (replacing, "log", _log),
    (state, "log", _log),
    (watching, "log", _log),
    (claimed, "log", _log),
)
