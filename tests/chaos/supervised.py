"""A supervisor with its server and store, which can hand over to another server."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.supervisor.asking import ask
from holdfast.supervisor.control import CONTROL_FILE, Do
from tests.chaos import steps
from tests.chaos.processes import SERVER, Processes
from tests.forking import ROOT, Forked, start
from tests.serving import environment

EXTENSION = "tests.chaos.steps:install"
# What has a tenth of a processor takes a minute to import a server beside those that serve.
RESTART_S = 150.0
_ANSWER_S = 200.0


class Supervised(Processes):
    """Servers of one data directory, one after the other, below one supervisor."""

    # Whether they have the steps of a hand-over. Those of former releases are others.
    has_steps = True

    def __init__(
        self, home: Path, settings: Mapping[str, Any], program: Sequence[str] = SERVER
    ) -> None:
        extensions = [*settings.get("extension", []), *[EXTENSION] * self.has_steps]
        with_supervisor = {**settings, "supervisor": True, "extension": extensions}
        super().__init__(home, with_supervisor)
        self._steps = home / "steps"
        # Servers are broken by the extension: their supervisor starts them as always.
        self._variables = {steps.BROKEN: program[1]} if program != SERVER else {}

    def arm(self, step: str, number: signal.Signals = signal.SIGKILL, pid: int = 0) -> None:
        """Send a signal when a server reaches this step; to that server, without a `pid`."""
        steps.arm(self._steps, step, number, pid)

    def disarm(self, step: str) -> None:
        steps.disarm(self._steps, step)

    def taken_by(self, step: str) -> int | None:
        """The process that has reached the step, if one has since it was disarmed last."""
        return steps.taken_by(self._steps, step)

    def is_past(self, step: str) -> bool:
        """Whether a server has reached the step, and the signal was sent."""
        return not steps.is_armed(self._steps, step)

    @property
    def supervisor_pid(self) -> int:
        assert self._server is not None
        return self._server.pid

    async def restart(self, **more: Any) -> str:
        """Hand over to another server. Returns why that failed, or nothing."""
        async with asyncio.timeout(_ANSWER_S):
            answers = await asyncio.to_thread(self._ask_for_restart, **more)
        last = answers[-1] if answers else {}
        return "" if last.get("done") else last.get("failed", "the supervisor has ended")

    def _ask_for_restart(self, **more: Any) -> list[dict[str, Any]]:
        return [*ask(self.data / CONTROL_FILE, do=Do.RESTART, **{"timeout": RESTART_S, **more})]

    async def start(self) -> None:
        """Start, unless the supervisor is there: it starts another server by itself."""
        if not self.is_running:
            await super().start()

    async def kill(self) -> None:
        """Kill the server, not its supervisor."""
        with suppress(ProcessLookupError):
            os.kill(steps.pid_of_server(self._steps), signal.SIGKILL)

    async def ended(self) -> None:
        """Wait for the end of the supervisor."""
        assert self._server is not None
        await self._ended(self._server)

    def _spawn(self) -> Forked:
        # Only the sources can be broken.
        is_broken = steps.BROKEN in self._variables
        variables = (environment(str(ROOT)) if is_broken else environment()) | self._variables
        variables[steps.VARIABLE] = str(self._steps)
        # The file says that there is one.
        del variables["HOLDFAST_SUPERVISOR"]
        return start(
            *(*self._program, "serve", "--config", str(self._config)),
            environment=variables,
            cwd=ROOT,
            errors=self._log,
        )
