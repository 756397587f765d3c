"""Tests that other threads take ahead, while the first takes those that come before them.

What Spark does for a few rows is to plan, which keeps one core busy, and to wait for Pythons. A
test marked `beside` needs nothing but Spark, a store, a folder of its own and what is there for the
whole run, and changes nothing that others see. Of one marked `begun` they take the beginning.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from inspect import signature
from queue import SimpleQueue
from typing import Any

import pytest

from tests.store.servers import ValkeyServer

_TAKEN = pytest.StashKey[Future[None]]()
_BEGUN = pytest.StashKey[Future[Any]]()
_THREADS = 2


def is_beside(item: pytest.Item) -> bool:
    return item.get_closest_marker("beside") is not None


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Those that are taken ahead are asked for last; whoever wants Spark has it start first."""
    return sorted(items, key=lambda item: (is_beside(item), not is_wanted("spark", item)))


def is_wanted(fixture: str, item: pytest.Item) -> bool:
    """Whether this test asks for it."""
    return isinstance(item, pytest.Function) and fixture in item.fixturenames


@contextmanager
def taking_ahead(
    items: Sequence[pytest.Item],
    places: pytest.TempPathFactory,
    prepare: Callable[[], None],
    **shared: object,
) -> Iterator[None]:
    """Those of them that are marked are begun, one after the other in each thread.

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
        # One of the threads waits for the doomed one, which works as long as it lives.
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
    """What its beginning has returned."""
    return item.stash[_BEGUN].result()


def is_taken(item: pytest.Item) -> bool:
    """Whether it was begun, once that has come to its end; else it is to be taken here and now."""
    taken = item.stash.get(_TAKEN, None)
    if taken is None or taken.cancel():
        return False
    taken.result()
    return True
