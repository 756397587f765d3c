"""One Spark for all tests of the pipeline, and one store."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from app.cli import spark as commands
from tests.pipeline.beside import in_order, is_taken, taking_ahead
from tests.pipeline.doomed import KILLS, Doomed
from tests.pipeline.java_names import remember_names
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Some of Spark's own modules are behind their time.
warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
warnings.filterwarnings("ignore", category=DeprecationWarning, module="pyspark")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark takes its time once, with whichever test comes first."""
    ours = [item for item in items if "tests/pipeline" in str(item.path)]
    for item in ours:
        item.add_marker(pytest.mark.timeout(120))
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
        assert "CI" not in os.environ, "nothing may be skipped here"
        pytest.skip("Spark is missing: make setup-test")
    from pipeline.session import Engine, open_session
    from pipeline.source.journal import JournalSource

    items: list[pytest.Item] = request.session.items
    # It starts a Spark of its own: beside this one, and not when its turn has come.
    shared = {"doomed": request.getfixturevalue("doomed")} if _is_wanted("doomed", items) else {}
    spark = open_session(Engine("local[2]", quick=True, settings=SMALL))
    spark.dataSource.register(JournalSource)
    remember_names(spark._jvm)
    with taking_ahead(items, tmp_path_factory, spark=spark, **shared):
        yield spark
    spark.stop()


def _is_wanted(name: str, items: list[pytest.Item]) -> bool:
    """Whether some test asks for this fixture."""
    return any(isinstance(item, pytest.Function) and name in item.fixturenames for item in items)


@pytest.fixture
def lent(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands take the Spark that runs already."""

    @contextmanager
    def lend(engine: object) -> "Iterator[SparkSession]":
        yield spark

    monkeypatch.setattr(commands, "session", lend)


@pytest.fixture(scope="session")
def doomed() -> Iterator[Doomed]:
    with Doomed(KILLS) as doomed:
        yield doomed


# Plans for a few rows are not worth the time to better them, nor to make classes of them.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.memory": "1g",
    # What Java is to have room for from the beginning, so that it need not clean up to get it: the
    # code of quick work would have a fifth of this.
    "spark.driver.extraJavaOptions": (
        "-XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=300m -Xms1g -Xmn500m -XX:+UseSerialGC"
    ),
}


@pytest.fixture(scope="session")
def shared_store() -> Iterator[ValkeyServer]:
    with ValkeyServer() as store:
        yield store


@pytest.fixture
def store(shared_store: ValkeyServer) -> ValkeyServer:
    shared_store.ask("FLUSHALL")
    return shared_store
