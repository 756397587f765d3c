"""What tests of several folders share."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.effort import TIMES
from tests.history import has_history
from tests.processor import Processor
from tests.serving import Servers
from tests.tracing import Tracing

# How long servers are under faults; the two runs with clients of all kinds share this time.
CHAOS_S = 40.0
# How long servers are fuzzed, after a few seconds of inputs that once did harm.
FUZZ_S = 12.0
# How many times servers are restarted under traffic; the second time, one that followed another.
RESTARTS = 2


# Pytest reads options from the folders on its command line, and always from this one.
def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--chaos-seconds", type=float, default=CHAOS_S, help="how long servers are tormented"
    )
    parser.addoption("--chaos-seed", type=int, default=None, help="the seed of an earlier run")
    parser.addoption(
        "--fuzz-seconds", type=float, default=FUZZ_S, help="how long servers are sent nonsense"
    )
    parser.addoption(
        "--restarts", type=int, default=RESTARTS, help="how often a server is restarted unnoticed"
    )
    parser.addoption(
        "--every-step", action="store_true", help="kill at every step of a hand-over, not at some"
    )
    parser.addoption("--fuzz-seed", type=int, default=None, help="the seed of earlier nonsense")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Processor())
    if "coverage" in sys.modules and sys.gettrace() is not None:
        config.pluginmanager.register(Tracing())
    # On a busy machine, any example may be slow.
    settings.register_profile("patient", deadline=None, max_examples=30 * TIMES)
    settings.register_profile("quick", deadline=None, max_examples=10)
    settings.load_profile("patient")
    # A shell's background processes ignore ctrl-C, and so would all their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Imported modules stay until the end, so garbage collection need not look at them.
    gc.disable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files without slow tests alone where those alone run: each takes time to import."""
    if not config.option.markexpr.startswith("slow") or collection_path.suffix != ".py":
        return None
    return "mark.slow" not in collection_path.read_text("utf-8") or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs former releases where git has none, as in a copy of the files."""
    if not (needing := [item for item in items if item.get_closest_marker("history")]):
        return
    if has_history():
        return
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if not item.get_closest_marker("history")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Fail a test that is skipped where nothing may be: there, what it lacks is a fault."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true":
        *_, reason = report.longrepr
        report.outcome, report.longrepr = "failed", f"{reason}; CI=true, so nothing may be skipped"
    return report


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    # DuckDB would report what is frozen as leaks.
    if "duckdb" in sys.modules:
        gc.unfreeze()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Server processes, one for each set of settings."""
    servers = Servers()
    yield servers
    servers.stop()
