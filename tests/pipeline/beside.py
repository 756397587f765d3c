"""Tests that a second thread takes ahead, while the first takes those that come before them.

What Spark does for a few rows is to plan, which keeps one core busy. A test marked `beside` needs
nothing but Spark, a store, a folder of its own and what is there for the whole run, and changes
nothing that others see.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from inspect import signature
from typing import Any

import pytest

from tests.store.servers import ValkeyServer

_TAKEN = pytest.StashKey[Future[None]]()


def is_beside(item: pytest.Item) -> bool:
    return item.get_closest_marker("beside") is not None


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Those that are taken ahead are asked for last."""
    return sorted(items, key=is_beside)


@contextmanager
def taking_ahead(
    items: Sequence[pytest.Item], places: pytest.TempPathFactory, **shared: object
) -> Iterator[None]:
    """Those of them that are marked are begun, one after the other."""
    pool = ThreadPoolExecutor(1)
    with ValkeyServer() as store:
        for item in filter(is_beside, items):
            given = {**shared, "store": store, "tmp_path": places.mktemp("beside"), **_case(item)}
            item.stash[_TAKEN] = pool.submit(_take, item, given)
        try:
            yield
        finally:
            pool.shutdown(cancel_futures=True)


def _case(item: Any) -> dict[str, Any]:
    return item.callspec.params if hasattr(item, "callspec") else {}


def _take(item: Any, given: dict[str, Any]) -> None:
    given["store"].ask("FLUSHALL")
    item.obj(**{name: given[name] for name in signature(item.obj).parameters})


def is_taken(item: pytest.Item) -> bool:
    """Whether it was begun, once that has come to its end; else it is to be taken here and now."""
    taken = item.stash.get(_TAKEN, None)
    if taken is None or taken.cancel():
        return False
    taken.result()
    return True
