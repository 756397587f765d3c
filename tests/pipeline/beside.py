"""Runs tests in other threads, ahead of their turn.

For a few rows, Spark mostly plans, which keeps one core busy, and waits for Python processes. A
test marked `beside` needs only Spark, a store, a folder of its own and fixtures of the session,
and changes nothing that others see. Of a test marked `begun`, only the beginning runs ahead.
"""

import encodings.idna
import http.cookiejar
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from inspect import signature
from queue import SimpleQueue
from typing import Any

import pytest

from tests.store.servers import ValkeyServer

# Sockets and `urllib` import these when they are first used. Another test may restore `sys.modules`
# at that moment, and then the import would fail.
_IMPORTED_EARLY = (encodings.idna, http.cookiejar)

_TAKEN = pytest.StashKey[Future[None]]()
_BEGUN = pytest.StashKey[Future[Any]]()
_THREADS = 2


def is_beside(item: pytest.Item) -> bool:
    return item.get_closest_marker("beside") is not None


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Put tests that run ahead last; of the others, those that start Spark come first."""
    return sorted(items, key=lambda item: (is_beside(item), not is_wanted("spark", item)))


def is_wanted(fixture: str, item: pytest.Item) -> bool:
    """Whether this test uses the fixture."""
    return isinstance(item, pytest.Function) and fixture in item.fixturenames


@contextmanager
def taking_ahead(
    items: Sequence[pytest.Item],
    places: pytest.TempPathFactory,
    prepare: Callable[[], None],
    **shared: object,
) -> Iterator[None]:
    """Run the marked tests in other threads, one after the other in each.

    Args:
        prepare: What each of the threads does first.
    """
    pool = ThreadPoolExecutor(_THREADS, initializer=prepare)
    stores = SimpleQueue[ValkeyServer]()
    with ExitStack() as opened:
        for _ in range(_THREADS):
            stores.put(opened.enter_context(ValkeyServer()))
        for item in items:
            for marker in item.iter_markers("begun"):
                begin, place = marker.kwargs["by"], places.mktemp("begun")
                item.stash[_BEGUN] = pool.submit(begin, shared["spark"], place, opened)
        # A test of the doomed ingests goes first: its thread only waits while they work.
        first = sorted(items, key=lambda item: not is_wanted("doomed", item))
        for item in filter(is_beside, first):
            given = {**shared, "tmp_path": places.mktemp("beside"), **_case(item)}
            item.stash[_TAKEN] = pool.submit(_take, item, given, stores)
        try:
            yield
        finally:
            pool.shutdown(cancel_futures=True)


def _case(item: Any) -> dict[str, Any]:
    return item.callspec.params if hasattr(item, "callspec") else {}


def _take(item: Any, given: dict[str, Any], stores: SimpleQueue[ValkeyServer]) -> None:
    store = stores.get()
    try:
        store.ask("FLUSHALL")
        known = {**given, "store": store}
        item.obj(**{name: known[name] for name in signature(item.obj).parameters})
    finally:
        stores.put(store)


def what_was_begun(item: pytest.Item) -> Any:
    """The result of the part that ran ahead."""
    return item.stash[_BEGUN].result()


def is_taken(item: pytest.Item) -> bool:
    """Wait for a test that runs ahead; false if it has yet to run, in its own turn."""
    taken = item.stash.get(_TAKEN, None)
    if taken is None or taken.cancel():
        return False
    taken.result()
    return True
