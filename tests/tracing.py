"""Coverage traces what tests and fixtures do, and not what pytest and Hypothesis do for them.

The interpreter takes about twice its time while it is traced, whatever it runs.
"""

import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from _pytest.assertion import rewrite


class Tracing:
    """Stops the tracer of the main thread, and lets it go on where there is something to see."""

    def __init__(self) -> None:
        self._tracer: Any = sys.gettrace()

    def pytest_collection(self) -> None:
        """Trace the modules that tests import, but not how their assertions are rewritten."""
        rewrite_test = rewrite._rewrite_test

        def rewrite_untraced(fn: Path, config: pytest.Config) -> tuple[bytes, CodeType]:
            with _traced_by(None):
                return rewrite_test(fn, config)

        rewrite._rewrite_test = rewrite_untraced

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        sys.settrace(None)
        for test in {getattr(item, "obj", None) for item in session.items}:
            search = getattr(test, "hypothesis", None)
            if search is not None and not iscoroutinefunction(search.inner_test):
                search.inner_test = self._traced(search.inner_test)

    def _traced(self, example: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(example)
        def traced(*given: Any, **named: Any) -> Any:
            with _traced_by(self._tracer):
                return example(*given, **named)

        return traced

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if not item.get_closest_marker("untraced"):
            return (yield)
        tracer, of_threads = self._tracer, threading.gettrace()
        self._tracer = None
        threading.settrace(None)
        try:
            return (yield)
        finally:
            self._tracer = tracer
            threading.settrace(of_threads)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self) -> Generator[None, object, object]:
        with _traced_by(self._tracer):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        search = getattr(pyfuncitem.obj, "hypothesis", None)
        is_search = search is not None and not iscoroutinefunction(search.inner_test)
        with _traced_by(None if is_search else self._tracer):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        with _traced_by(self._tracer):
            return (yield)


@contextmanager
def _traced_by(tracer: Any) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield
    finally:
        sys.settrace(before)
