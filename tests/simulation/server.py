"""The real server in a simulated process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from holdfast.compose import running
from holdfast.compose.data_directory import DataDirectory
from holdfast.compose.running_server import RunningServer
from holdfast.compose.succession import NoSuccession
from holdfast.settings import Settings
from holdfast.web import ticker
from tests.simulation.process import Main, Process

PORT = 8080


def serving(
    settings: Settings, on_running: Callable[[Process, RunningServer], None] | None = None
) -> Main:
    """Return the server's main program; it stops in order when it is asked to end."""

    async def serve(process: Process) -> None:
        async with running(settings, NoSuccession()) as server:
            process.world.note(process.name, "serves")
            if on_running is not None:
                on_running(process, server)
            await process.is_asked_to_end.wait()

    return serve


def settings_of(name: str, home: Path, store: str, **given: Any) -> Settings:
    """Return the settings of a server with this address, whose data are in a folder of its own."""
    return Settings(
        host=name, port=PORT, open=True, data=home / name, redis=f"redis://{store}:6379", **given
    )


class _NoCollector:
    """Collects nothing: when objects end must not depend on the real time."""

    def begin(self) -> None:
        pass

    def exempt(self) -> None:
        pass

    def beat(self, queued: int) -> None:
        pass


@contextmanager
def adapted() -> Iterator[None]:
    """Let servers not depend on this machine, and on how long things really take."""

    def name(directory: DataDirectory) -> str:
        return f"lock of {directory.path.name}"

    with (
        patch.object(ticker, "Collector", _NoCollector),
        patch.object(DataDirectory, "lock_name", property(name)),
    ):
        yield
