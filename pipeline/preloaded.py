"""What tasks need, imported by the process that forks those that run them, once for all of them."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType

import pyarrow as pa


class _NoPandas(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


@contextmanager
def _without_pandas() -> Iterator[None]:
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


# Arrow imports it with its first value, if it finds it, and looks no second time. That takes a
# second, more than all the rest, and no task has a use for it.
with _without_pandas():
    pa.scalar(0)

import pyarrow.dataset  # noqa: E402, F401

import holdfast.pipeline.made_tables  # noqa: E402
import holdfast.pipeline.source.taking  # noqa: E402, F401
