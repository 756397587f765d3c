"""A real server that is killed, and an audit of its journal."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from holdfast.cli.main import program
from holdfast.journal.frame import decode
from holdfast.journal.schema import Event
from holdfast.journal.unfold import unfold
from holdfast.pipeline.arrow import ARROW
from holdfast.pipeline.ingest import Source, take_what_is_there
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.flow import FUNNEL
from holdfast.pipeline.source.planning import Planner
from holdfast.pipeline.source.reading import read_piece
from holdfast.pipeline.source.streams import Journals
from tests.integration.talker import Talker
from tests.pipeline.audited import findings_of, violations
from tests.pipeline.journals import Writer
from tests.pipeline.others import asked
from tests.pipeline.stored import store as store_rows
from tests.serving import Server
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = 20
DEAD = MESSAGES // 5
REPLAY = ["pipeline", "replay", "--all", "--json"]
_TIMEOUT_S = 60.0


def receiver(url: str, name: str) -> Talker:
    talker = Talker(url)
    options = {"session": f"{name}/1", "retries": 0}
    talker.handshake(version="1.0", ext={"ack": True, "delivery": options})
    talker.send("/meta/subscribe", subscription="/orders/**")
    talker.connect(advice={"timeout": 0})
    return talker


def settle(talker: Talker) -> int:
    """Take all events; refuse each fifth, ack the others, and return their number."""
    taken = talker.connect(advice={"timeout": 0}, ext={"ack": 0})
    events = [message["ext"]["delivery"] for message in taken if "data" in message]
    (reply,) = [message for message in taken if message["channel"] == "/meta/connect"]
    refused: list[dict[str, Any]] = [
        {"seq": event["seq"], "errorCode": "user.update.error", "message": "no"}
        for event in events[::5]
    ]
    ext = {"ack": reply["ext"]["ack"], "delivery": {"verdicts": refused}}
    talker.connect(advice={"timeout": 0}, ext=ext)
    return len(events)


def the_journal(store: ValkeyServer) -> tuple[Writer, list[tuple[str, list[Event]]]]:
    """A writer for the journal of the only node, and the events of each entry."""
    ((node, _),) = Journals(store.url, "holdfast").numbered().items()
    writer = Writer(store, node)
    entries = store.ask("XRANGE", writer.stream, "-", "+")
    writer.epoch = entries[-1][1][b"epoch"].decode() if entries else ""
    return writer, [(id.decode(), unfold(decode(fields[b"frame"]))) for id, fields in entries]


def read_anew(store: ValkeyServer) -> pa.Table:
    """All events of the journal, whatever is missing."""
    journals = Journals(store.url, "holdfast")
    planner = Planner(journals, cores=1, accepts_loss=True)
    pieces = planner.pieces({}, planner.advance({}, planner.newest(), None))
    told = (read_piece(journals, piece, accepts_loss=True) for piece in pieces)
    return pa.Table.from_batches(chain.from_iterable(told), ARROW)


def wait_for(kind: str, store: ValkeyServer) -> None:
    """Wait until all such events are in the journal: within a second of the server's answer."""
    deadline = time.monotonic() + _TIMEOUT_S
    while sum(event.kind == kind for _, told in the_journal(store)[1] for event in told) < DEAD:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def replay_what_died(server: Server, cleo: Talker, lake: Lake) -> None:
    """Have the server replay letters from a plan; a second replay skips all of them."""
    words = [*REPLAY, "--lake", str(lake.root), "--to", "cleo/1", "--yes"]
    words += ["--url", server.url, "--token-file", str(server.data / "admin-token")]
    runner = CliRunner()
    planned = runner.invoke(program, [*words, "--dry-run"])
    assert orjson.loads(planned.stdout.splitlines()[0])["letters"] == DEAD // 2
    with ThreadPoolExecutor(1) as others:
        taking = others.submit(take_again, cleo)
        done = orjson.loads(runner.invoke(program, words).stdout)
        assert taking.result() == DEAD
    counts = ("state", "total", "sent", "acked", "died_again")
    assert [done[name] for name in counts] == ["done", DEAD, DEAD, DEAD, 0]
    again = runner.invoke(program, words)
    assert orjson.loads(again.stdout)["skips"] == {"replayed": DEAD}
    assert again.exit_code == 1


def take_again(cleo: Talker) -> int:
    """Receive and ack until all messages that had died have arrived."""
    taken, batch = 0, 0
    while taken < DEAD:
        said = cleo.connect(advice={"timeout": 1000}, ext={"ack": batch})
        (reply,) = [message for message in said if message["channel"] == "/meta/connect"]
        batch = reply["ext"]["ack"]
        taken += sum("data" in message for message in said)
    cleo.connect(advice={"timeout": 0}, ext={"ack": batch})
    return taken


def forge(store: ValkeyServer) -> None:
    """Take a frame with publishes out of a journal, and put events in that never happened."""
    writer, told = the_journal(store)
    acked = next(event for _, events in told for event in events if event.kind == "acked")
    assert acked.msg is not None
    # Bob has acked nothing, and nothing was replayed to him.
    never = acked._replace(receiver="bob/1")
    unknown = acked._replace(kind="handed", msg=acked.msg + 1, attempt=1)
    writer.write(never, never, unknown)
    writer.delete(next(id for id, events in told if events[0].kind == "published"))


def refused_before_they_were_handed(lake: Lake) -> Any:
    """The number of copies that were refused before their hand-over, by the times of events."""
    found = asked(
        lake,
        "select count(*) from (select min(ts) filter (kind = 'handed') as handed, "
        "min(ts) filter (kind = 'refused') as refused "
        "from events group by msg, origin, receiver) where refused < handed",
    )
    return found and found[0]


class Begun(NamedTuple):
    """A server with deaths in its journal, and the tables that have them."""

    store: ValkeyServer
    server: Server
    lake: Lake


def begin(spark: "SparkSession", place: Path, opened: ExitStack) -> Begun:
    store = opened.enter_context(ValkeyServer())
    server = Server({"journal": True, "redis": store.url, "max_interval": 3_600_000})
    opened.callback(server.stop)
    ann, _ = receiver(server.url, "ann"), receiver(server.url, "bob")
    publisher = Talker(server.url)
    publisher.handshake(version="1.0")
    for number in range(MESSAGES):
        publisher.send(f"/orders/{number % 2}", data={"number": number})
    assert settle(ann) == MESSAGES
    wait_for("dead", store)
    lake = Lake(place)
    take_what_is_there(spark, Source(store.url), lake, lambda taken: None)
    return Begun(store, server, lake)


@pytest.mark.begun(by=begin)
def test_the_journal_of_a_killed_server_is_complete_and_forgeries_in_it_are_found(
    spark: "SparkSession", lent: None, begun: Begun, tmp_path: Path
) -> None:
    store, server, lake = begun
    replay_what_died(server, receiver(server.url, "cleo"), lake)
    wait_for("replayed", store)
    # All that the server has confirmed is in the journal; acks may be on their way.
    server.process.kill()
    server.process.wait()
    taken = take_what_is_there(spark, Source(store.url), lake, lambda taken: None)
    assert taken.lacking == {}
    planned = CliRunner().invoke(program, [*REPLAY, "--lake", str(lake.root), "--dry-run"])
    assert (planned.exit_code, "were replayed" in planned.stderr) == (1, True)
    assert sum(Journals(store.url, "holdfast").numbered().values()) > 0
    forge(store)
    # Only the events, without the tables made of them.
    forged = store_rows(tmp_path, events=read_anew(store))
    found = Counter(row["kind"] for row in violations(findings_of(forged)))
    assert violations(findings_of(lake)) == []
    with of_lake(lake) as tables:
        rows = tables.ask(FUNNEL).by_name()
    sums = {name: sum(row[name] for row in rows) for name in ("copies", "dead", "acked")}
    assert refused_before_they_were_handed(lake) == 0
    assert sums["copies"] == 2 * MESSAGES
    # Acks need not have reached the store; refusals were waited for.
    assert sums["dead"] == DEAD
    assert sums["acked"] <= MESSAGES
    assert (found.pop("frame.gap"), found.pop("settled_twice")) == (1, 1)
    # The other events of messages in the frame that is gone, and of the unknown message.
    assert found.pop("not_published") > 1
    assert found.pop("never_handed") >= 1
    # If all this took a minute, there are books, too.
    kinds = {kind for kind in found if not kind.startswith("books_")}
    assert kinds <= {"too_many_ends"}
