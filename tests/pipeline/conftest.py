"""One Spark for all tests of the pipeline, and one store."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.cli import spark as commands
from tests.pipeline.beside import in_order, is_taken, is_wanted, taking_ahead, what_was_begun
from tests.pipeline.doomed import KILLS, Doomed
from tests.pipeline.java_names import remember_names
from tests.pipeline.small import SMALL
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Some of Spark's modules use deprecated functions.
warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
warnings.filterwarnings("ignore", category=DeprecationWarning, module="pyspark")


# Before `-m` chooses by markers.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use Spark, and have those come first that start it.

    Whichever comes first waits until it has started: minutes on a slow machine.
    """
    ours = [item for item in items if "tests/pipeline" in str(item.path)]
    for item in ours:
        item.add_marker(pytest.mark.timeout(600))
        if is_wanted("spark", item):
            item.add_marker(pytest.mark.spark)
    if ours:
        first = items.index(ours[0])
        items[first : first + len(ours)] = in_order(ours)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    return is_taken(pyfuncitem) or None


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[SparkSession]":
    if find_spec("pyspark") is None:
        pytest.skip("Spark is missing: make setup-test")
    from holdfast.pipeline.session import Engine, open_session

    items: list[pytest.Item] = request.session.items
    wants_doomed = any(is_wanted("doomed", item) for item in items)
    # It starts a Spark of its own, at the same time as this one.
    shared = {"doomed": request.getfixturevalue("doomed")} if wants_doomed else {}
    spark = open_session(Engine("local[2,4]", quick=True, settings=SMALL))
    remember_names(spark._jvm)
    prepare = partial(_forget_places, spark)
    prepare()
    with taking_ahead(items, tmp_path_factory, prepare, spark=spark, **shared):
        yield spark
    # Nothing waits until it has stopped.
    threading.Thread(target=spark.stop).start()


def _forget_places(spark: "SparkSession") -> None:
    """Spare Spark the search for the line of code behind each action of this thread."""
    for name in ("callSite.short", "callSite.long"):
        spark.sparkContext.setLocalProperty(name, "tests")


@pytest.fixture
def lent(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands use the Spark that runs already."""

    @contextmanager
    def lend(engine: object) -> "Iterator[SparkSession]":
        yield spark

    monkeypatch.setattr(commands, "session", lend)


@pytest.fixture
def begun(request: pytest.FixtureRequest, spark: "SparkSession") -> Any:
    return what_was_begun(request.node)


@pytest.fixture(scope="session")
def doomed() -> Iterator[Doomed]:
    with Doomed(KILLS) as doomed:
        yield doomed


@pytest.fixture(scope="session")
def shared_store() -> Iterator[ValkeyServer]:
    with ValkeyServer() as store:
        yield store


@pytest.fixture
def store(shared_store: ValkeyServer) -> ValkeyServer:
    shared_store.ask("FLUSHALL")
    return shared_store
