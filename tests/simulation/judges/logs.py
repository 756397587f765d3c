"""Judges what servers log: no traceback, and nothing critical."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.simulation.environment import running_process
from tests.simulation.judges.excuses import Excuses
from tests.simulation.process import Process

# Which faults excuse which records, by how these begin.
_EXCUSED_BY: dict[str, frozenset[str]] = {}


class Complaint(NamedTuple):
    """A record with a traceback, or a critical one."""

    at: float
    server: str
    said: str
    error: str


class Complaints(logging.Handler):
    """Collects what the servers of a world should never log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[Complaint] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record if it is of a server, and has a traceback or is critical."""
        process = running_process()
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(process, Process) or not (error or record.levelno >= logging.CRITICAL):
            return
        said = record.getMessage().partition("\n")[0]
        self.found.append(Complaint(process.world.now, process.name, said, repr(error)))

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen to everything that is logged meanwhile."""
        root = logging.getLogger()
        root.addHandler(self)
        try:
            yield
        finally:
            root.removeHandler(self)

    def violations(self, excuses: Excuses) -> list[str]:
        """Return what no fault excuses."""
        return [
            f"log: {each.server} said at {each.at:.3f}: {each.said} ({each.error})"
            for each in self.found
            if not _is_excused(each, excuses)
        ]


def _is_excused(complaint: Complaint, excuses: Excuses) -> bool:
    for said, faults in _EXCUSED_BY.items():
        if complaint.said.startswith(said):
            return excuses.excuse(f"log {said}", complaint.at, complaint.at, only=faults)
    return False
