"""Processor seconds of each file of tests, with those of all processes that it starts.

Where several groups of tests share two cores, how long a test took says little.
"""

import os
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest

_PROC = Path("/proc")
_MOST_FILES = 10
# To ask for the figures takes longer than most tests.
_INTERVAL_S = 0.5


class Processor:
    """Prints them at the end, the greatest first, where the system tells them as Linux does."""

    def __init__(self) -> None:
        self._ticks: Counter[str] = Counter()
        self._seen = 0
        self._asked_s = 0.0

    def pytest_collection_finish(self) -> None:
        self._count("(imports and collection)")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        done = yield
        file = item.location[0]
        is_last = nextitem is None or nextitem.location[0] != file
        if is_last or monotonic() - self._asked_s > _INTERVAL_S:
            self._count(file)
        return done

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if total := self._ticks.total():
            terminalreporter.section(f"{_seconds(total)} processor seconds")
            for name, ticks in self._ticks.most_common(_MOST_FILES):
                terminalreporter.write_line(f"{_seconds(ticks)} {name}")

    def _count(self, name: str) -> None:
        # A process that nothing waits for takes its figure along.
        now = max(self._seen, _ticks_of(os.getpid()))
        self._ticks[name] += now - self._seen
        self._seen = now
        self._asked_s = monotonic()


def _ticks_of(process: int | str) -> int:
    """Of a process, its descendants, and those it has waited for."""
    found = 0
    # It may end meanwhile.
    with suppress(OSError):
        *_, figures = (_PROC / f"{process}/stat").read_text().rpartition(")")
        found = sum(map(int, figures.split()[11:15]))
        for file in (_PROC / f"{process}/task").glob("*/children"):
            found += sum(map(_ticks_of, file.read_text().split()))
    return found


def _seconds(ticks: int) -> str:
    return f"{ticks / os.sysconf('SC_CLK_TCK'):.1f}"
