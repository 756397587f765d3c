"""Several shards have a journal each; the tables have the events of all of them."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast.cluster.shards import first_map
from holdfast.journal.schema import Event
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.ingest import IngestProgress, Source, take_what_is_there
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.flow import FUNNEL
from holdfast.pipeline.results import write_back
from holdfast.pipeline.source.planning import Planner
from holdfast.pipeline.source.ranges import piece_of, range_of
from holdfast.pipeline.source.readers import Readers
from holdfast.pipeline.source.streams import Journals
from holdfast.pipeline.tasks import LocalTasks
from holdfast.store.format.keys import RedisKeys
from tests.pipeline.audited import findings_of, violations
from tests.pipeline.journals import Writer
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.events import event, published
from tests.unit.pipeline.stories import acked, books, handed, start

pytestmark = pytest.mark.untraced

NAMESPACE = "holdfast"
NODES = ("n1", "n1/1", "n1/2")


class Deployment:
    """Three shards: each has a store of its own, or all have one."""

    def __init__(self, stores: list[ValkeyServer]) -> None:
        self.stores = stores
        self.urls = " ".join(each.url for each in stores)
        self.writers = [
            Writer(stores[shard % len(stores)], node) for shard, node in enumerate(NODES)
        ]
        for writer in self.writers:
            writer.deployment = "town"
        meta = RedisKeys(NAMESPACE).meta
        stores[0].ask("HSET", meta, "shards", first_map(len(NODES)).to_json())

    def write(self, shard: int, told: Iterable[Event]) -> None:
        own = [each._replace(node=NODES[shard], origin=None) for each in told]
        writer = self.writers[shard]
        writer.write_all((each for each in own if each.kind != "books"), each=4)
        if counts := [each for each in own if each.kind == "books"]:
            writer.write(*counts)

    def ingest(self, lake: Lake, *, most: int = 1000) -> IngestProgress:
        source = Source(self.urls, NAMESPACE, most)
        return take_what_is_there(LocalTasks(1), source, lake, lambda _: None)


@pytest.fixture(params=["one store", "a store for each"])
def town(request: pytest.FixtureRequest) -> Iterator[Deployment]:
    with ExitStack() as opened:
        count = 1 if request.param == "one store" else len(NODES)
        yield Deployment([opened.enter_context(ValkeyServer()) for _ in range(count)])


def received(msg: int, *receivers: str, at: float = 0.0) -> list[Event]:
    """What a shard says of another one's message that these sessions get and ack."""
    told = [published(msg, len(receivers), size=0)]
    for name in receivers:
        told += [handed(msg + 0.1 + at, msg, name), acked(msg + 0.2 + at, msg, name)]
    return told


def crossing() -> list[list[Event]]:
    """Ten messages of the first shard, each with a receiver there and two in another one.

    The third shard gets only the last of them.
    """
    told: list[list[Event]] = [[start(-1)], [start(-1)], [start(-1)]]
    for msg in range(10):
        told[0] += [
            published(msg, 1),
            handed(msg + 0.1, msg, "ann/1"),
            acked(msg + 0.2, msg, "ann/1"),
        ]
        told[1] += received(msg, "bob/1", "cleo/1")
    told[2] += received(9, "dan/1")
    for shard, copies in enumerate((10, 20, 1)):
        told[shard] += books(30, accepted=copies, acked=copies, open=0)
    return told


def funnel(lake: Lake) -> dict[str, Any]:
    with of_lake(lake) as tables:
        [row] = tables.ask(FUNNEL).by_name()
    return row


def test_a_message_that_crosses_is_one_message_with_the_copies_of_all_shards(
    town: Deployment, tmp_path: Path
) -> None:
    for shard, told in enumerate(crossing()):
        town.write(shard, told)
    lake = Lake(tmp_path)
    done = town.ingest(lake)
    assert done.batches == 1
    row = funnel(lake)
    numbers = {name: row[name] for name in ("published", "copies", "acked", "open")}
    assert numbers == {"published": 10, "copies": 31, "acked": 31, "open": 0}
    assert violations(findings_of(lake)) == []
    assert {*lake.positions()} == {*NODES}


def test_the_tables_are_the_same_if_shards_are_read_in_turn(
    town: Deployment, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    for shard, told in reversed([*enumerate(crossing())]):
        town.write(shard, told)
        # A shard without a journal is not there yet.
        for missing in range(1, shard):
            town.write(missing, [])
            _begin(town, missing)
        town.ingest(lake, most=60)
    row = funnel(lake)
    assert (row["published"], row["copies"], row["acked"], row["open"]) == (10, 31, 31, 0)
    assert violations(findings_of(lake)) == []


def _begin(town: Deployment, shard: int) -> None:
    """Let a shard have opened its store, and written nothing."""
    meta = RedisKeys(NAMESPACE, shard).meta
    town.stores[shard % len(town.stores)].ask("HSET", meta, "epoch", "seed-1")


def test_an_event_that_one_shard_lost_makes_its_books_differ(
    town: Deployment, tmp_path: Path
) -> None:
    first, second, third = crossing()
    second.remove(acked(4.2, 4, "cleo/1"))
    for shard, told in enumerate((first, second, third)):
        town.write(shard, told)
    lake = Lake(tmp_path)
    town.ingest(lake)
    found = [(row["kind"], row["node"], row["number"]) for row in violations(findings_of(lake))]
    assert found == [("books_acked", "n1/1", -1)]


def test_the_audit_reports_messages_that_did_not_cross(town: Deployment, tmp_path: Path) -> None:
    for shard, told in enumerate(crossing()):
        town.write(shard, told)
    town.write(2, [event("gap", 31, what="0", number=9), event("gap", 32, what="1")])
    lake = Lake(tmp_path)
    town.ingest(lake)
    found = [
        (row["kind"], row["node"], row["number"], row["what"])
        for row in violations(findings_of(lake))
    ]
    assert found == [
        ("gap", "n1/2", 9, "messages of shard 0 did not arrive here"),
        ("gap", "n1/2", None, "messages of shard 1 did not arrive here"),
    ]


def test_messages_from_before_a_shards_first_frame_are_no_violations(
    town: Deployment, tmp_path: Path
) -> None:
    for shard, told in enumerate(crossing()):
        town.write(shard, told)
    store, writer = town.stores[1 % len(town.stores)], town.writers[1]
    # The publish of a message, but not what its receivers did.
    removed = writer.entries()[:3]
    writer.delete(*removed)
    # The server counts what it removes.
    store.ask("HSET", RedisKeys(NAMESPACE, 1).meta, f"trimmed {writer.stream}", len(removed))
    lake = Lake(tmp_path)
    town.ingest(lake)
    kinds = {row["kind"] for row in violations(findings_of(lake))}
    # The books cannot be compared with what is gone.
    assert kinds <= {"books_accepted", "books_acked", "books_open"}


def test_each_shard_hears_what_tables_have_of_its_journal_and_the_first_gets_the_results(
    town: Deployment, tmp_path: Path
) -> None:
    for shard, told in enumerate(crossing()):
        town.write(shard, told)
    lake = Lake(tmp_path)
    town.ingest(lake)
    readers = Readers(Journals(town.urls, NAMESPACE))
    assert [each.lake for each in readers.all()] == [lake.id]
    for shard, writer in enumerate(town.writers):
        store = town.stores[shard % len(town.stores)]
        read = RedisKeys(NAMESPACE, shard).journal_read(NODES[shard])
        assert store.ask("HGET", read, lake.id).decode() == writer.entries()[-1]
    assert readers.drop(lake.id)
    assert readers.all() == []
    write_back({"audit": {"rows": []}}, town.urls, NAMESPACE)
    assert town.stores[0].ask("GET", RedisKeys(NAMESPACE).pipeline_result("audit"))


def test_a_piece_of_a_shard_is_the_same_after_its_way_through_spark(town: Deployment) -> None:
    for shard, told in enumerate(crossing()):
        town.write(shard, told)
    planner = Planner(Journals(town.urls, NAMESPACE), cores=1, accepts_loss=False)
    pieces = planner.pieces({}, planner.advance({}, planner.newest(), None))
    assert [each.node for each in pieces] == [*NODES]
    rows = [row for piece in pieces for row in range_of(piece).to_pylist()]
    assert [piece_of(row, NAMESPACE) for row in rows] == pieces


def test_a_store_that_lacks_a_shard_is_refused() -> None:
    with ValkeyServer() as first, ValkeyServer() as others:
        town = Deployment([first, others, others])
        for shard, told in enumerate(crossing()):
            town.write(shard, told)
        with pytest.raises(PipelineFailed, match="shard 1 of 3 is not in this store"):
            Journals(first.url, NAMESPACE)
        assert Journals(town.urls, NAMESPACE).nodes() == [*NODES]
