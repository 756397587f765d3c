"""One Spark for all tests of the pipeline, and one store."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from app.cli import spark as commands
from tests.pipeline.doomed import KILLS, Doomed
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Some of Spark's own modules are behind their time.
warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
warnings.filterwarnings("ignore", category=DeprecationWarning, module="pyspark")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark takes its time once, with whichever test comes first."""
    for item in items:
        if "tests/pipeline" in str(item.path):
            item.add_marker(pytest.mark.timeout(120))


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> "Iterator[SparkSession]":
    if find_spec("pyspark") is None:
        assert "CI" not in os.environ, "nothing may be skipped here"
        pytest.skip("Spark is missing: make setup-test")
    from pipeline.session import Engine, open_session
    from pipeline.source.journal import JournalSource

    # It starts a Spark of its own: beside this one, and not when its turn has come.
    if any("doomed" in item.fixturenames for item in request.session.items):  # type: ignore[attr-defined]
        request.getfixturevalue("doomed")
    spark = open_session(Engine("local[2]", quick=True, settings=SMALL))
    spark.dataSource.register(JournalSource)
    yield spark
    spark.stop()


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
    # Else Java cleans it all the time: for quick work it has a fifth of this.
    "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=240m",
}


@pytest.fixture(scope="session")
def shared_store() -> Iterator[ValkeyServer]:
    with ValkeyServer() as store:
        yield store


@pytest.fixture
def store(shared_store: ValkeyServer) -> ValkeyServer:
    shared_store.ask("FLUSHALL")
    return shared_store
