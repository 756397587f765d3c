"""An ingest reads each event of a journal once, and reports what is wrong with the journal."""

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest
from redis.exceptions import AuthenticationError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from holdfast.journal.frame import Body, Head, decode, encode
from holdfast.journal.schema import MOST_EVENTS, VERSION, Event
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.ingest import Source, take_what_is_there, write_piece
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.source.clients import answering
from holdfast.pipeline.source.outline import BEGIN, Position, stream_entries
from holdfast.pipeline.source.pace import Pace
from holdfast.pipeline.source.planning import Offset, Planner
from holdfast.pipeline.source.reading import read_piece
from holdfast.pipeline.source.streams import Journals
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from tests.pipeline.journals import Writer, evaluate, frame_of
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.events import event, published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def some_events(first: int, last: int) -> list[Event]:
    return [
        each
        for n in range(first, last)
        for each in (
            published(n, 1),
            event("handed", n + 0.1, n, channel="/a", receiver="joe/1", attempt=1),
            event("acked", n + 0.2, n, channel="/a", receiver="joe/1"),
        )
    ]


def taken(store: ValkeyServer, *, accepts_loss: bool = False) -> list[dict[str, Any]]:
    """The rows that an ingest would read."""
    return taken_from(store, {}, accepts_loss=accepts_loss)[0]


def taken_from(
    store: ValkeyServer, start: Offset, *, most: int | None = None, accepts_loss: bool = False
) -> tuple[list[dict[str, Any]], Offset]:
    """The rows of the next batch, and where it ends."""
    journals = Journals(store.url, "holdfast")
    planner = Planner(journals, cores=1, accepts_loss=accepts_loss)
    end = planner.advance(start, planner.newest(), most)
    rows = [
        row
        for piece in planner.pieces(start, end)
        for table in read_piece(journals, piece, accepts_loss=accepts_loss)
        for row in table.to_pylist()
    ]
    return rows, end


def incidents(rows: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    """The kind, the frame and the number of each incident."""
    return [(row["kind"], row["seq"], row["number"]) for row in rows if "frame." in row["kind"]]


def acks(rows: list[dict[str, Any]]) -> int:
    return [row["kind"] for row in rows].count("acked")


def test_events_are_read_as_they_were_written(store: ValkeyServer) -> None:
    told = some_events(0, 40)
    Writer(store).write_all(told, each=6)
    rows = sorted(taken(store), key=itemgetter("ts"))
    for row in rows:
        row["ts"] = round(row["ts"].timestamp() * 1e6)
    assert [Event(*(row[name] for name in Event._fields)) for row in rows] == told


def test_a_journal_is_divided_among_several_cores(
    store: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.pipeline.source.planning._SMALLEST", 10)
    Writer(store).write_all(some_events(0, 40), each=5)
    journals = Journals(store.url, "holdfast")
    planner = Planner(journals, cores=3, accepts_loss=False)
    pieces = planner.pieces({}, planner.advance({}, planner.newest(), None))
    assert len(pieces) == 3
    assert [piece.after for piece in pieces[1:]] == [piece.last for piece in pieces[:-1]]


def test_a_plan_counts_the_events_that_a_frame_says_it_has_up_to_the_most_of_a_frame(
    store: ValkeyServer,
) -> None:
    writer = Writer(store)
    numbers = [1, MOST_EVENTS, MOST_EVENTS + 1]
    body = cast("Body", {"names": [], "channels": []})
    for number in numbers:
        writer.write_frame(encode(Head(VERSION, "n1", number, 0, 0), body))
    seen = stream_entries(Journals(store.url, "holdfast").redis("n1"), writer.stream, BEGIN, "+")
    # What no frame can have is reported when the frame is read.
    assert [each.events for each in seen] == [1, MOST_EVENTS, 1]


def test_the_journal_is_found_under_the_redis_keys_of_the_server(store: ValkeyServer) -> None:
    Writer(store).write(published(0, 1))
    journals = Journals(store.url, "holdfast")
    assert journals.numbered() == {"n1": 1}
    assert journals.stream("n1") == RedisKeys("holdfast").journal("n1")


def test_missing_frames_stop_an_ingest_unless_it_accepts_loss(store: ValkeyServer) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 10), each=3)
    writer.delete(*writer.entries()[4:6])
    with pytest.raises(PipelineFailed, match=r"frames 5 to 6 are missing.*--accept-loss"):
        taken(store)
    assert incidents(taken(store, accepts_loss=True)) == [("frame.gap", 7, 2)]


def test_a_repeated_frame_counts_once_and_is_reported(store: ValkeyServer) -> None:
    writer = Writer(store)
    frame = frame_of(some_events(0, 2))
    writer.write_frame(frame)
    writer.append(1, frame)
    rows = taken(store)
    assert (incidents(rows), acks(rows)) == ([("frame.repeat", 1, 1)], 2)


def test_a_store_that_lost_its_last_frames_is_noticed(store: ValkeyServer) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 4), each=3)
    writer.epoch = "seed-2"
    writer.append(3, frame_of(some_events(7, 8)))
    with pytest.raises(PipelineFailed, match="lost frames 3 to 4"):
        taken(store)
    rows = taken(store, accepts_loss=True)
    assert (incidents(rows), acks(rows)) == ([("frame.rewind", 3, 2)], 5)


def test_frame_numbers_may_begin_again_in_an_emptied_store(store: ValkeyServer) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 3), each=3)
    writer.epoch = "other-1"
    writer.append(1, frame_of(some_events(7, 8)))
    assert incidents(taken(store)) == [("frame.restart", 1, 1)]


@pytest.mark.parametrize("most", [None, 3])
def test_an_emptied_store_is_read_from_its_beginning_even_if_its_clock_is_behind(
    store: ValkeyServer, most: int | None
) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 3), each=3)
    read, at = taken_from(store, {})
    store.ask("FLUSHALL")
    store.ask("HSET", RedisKeys("holdfast").meta, writer.stream, 3)
    for seq in (1, 2, 3):
        # The last id is above those that were read, the others are below.
        id = f"{seq}-0" if seq < 3 else f"{10**14}-0"
        frame = frame_of(some_events(seq + 6, seq + 7))
        store.ask("XADD", writer.stream, id, "epoch", "other-1", "seq", seq, "frame", frame)
    rows: list[dict[str, Any]] = []
    for _ in range(4):
        more, at = taken_from(store, at, most=most, accepts_loss=True)
        rows += more
    assert (acks(read), acks(rows)) == (3, 3)
    assert incidents(rows) == [("frame.restart", 1, 1)]


def test_few_frames_wait_for_others_and_many_are_taken_at_once() -> None:
    pace = Pace(60)
    assert not pace.is_due(0, 1000)
    # After a quiet time nothing has to wait.
    assert pace.is_due(1, 1000)
    assert not pace.is_due(1, 1059)
    assert pace.is_due(1, 1060)
    assert not pace.is_due(0, 1120)
    assert pace.is_due(1, 1120)
    assert pace.is_due(200, 1121)


def test_frame_numbers_that_continue_after_a_restart_are_no_incident(store: ValkeyServer) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 3), each=3)
    writer.epoch = "seed-2"
    writer.write(*some_events(3, 4))
    assert incidents(taken(store)) == []


def alien_frames() -> dict[str, bytes]:
    whole = frame_of(some_events(0, 30))
    head = Head(1, "n1", 1, 10**15, 10**15)
    row = {"kind": ["acked"], "messages": [[7]], "receivers": [0], "t": [[0]]}
    no_place = {
        "names": ["joe/1"],
        "groups": [[0]],
        "channels": [],
        "messages": {"id": [], "channel": []},
    }
    return {
        "empty": b"",
        "torn": whole[:-20],
        "text": b"hello",
        "references to nothing": encode(head, {**no_place, "delivered": row}),  # type: ignore[typeddict-item]
        "an impossible time": encode(
            head._replace(t0=2**62, t1=2**62),
            {
                "changed": {
                    "kind": ["node"],
                    "t": [0],
                    "name": [-1],
                    "channel": [-1],
                    "what": ["start"],
                    "number": [0],
                }
            },
        ),
        "of another node": whole.replace(b'"node":"n1"', b'"node":"n2"', 1),
        "a count that is too high": whole.replace(b'"n":90', b'"n":91', 1),
    }


def edited(packed: bytes, block: str, column: str, value: Any) -> bytes:
    """The frame with another first value in a column."""
    head, body = decode(packed)
    cast("Any", body)[block][column][0] = value
    return encode(head, body)


EVENTS = some_events(2, 3)
FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "another time": lambda frame: edited(frame, "delivered", "t", 77),
    "another code": lambda frame: edited(frame, "delivered", "code", "user.update.error"),
    "an extra copy": lambda frame: edited(frame, "published", "copies", 2),
    "an ack changed to an expiry": lambda frame: frame_of(
        [each._replace(kind="expired") if each.kind == "acked" else each for each in EVENTS]
    ),
    "a missing ack": lambda frame: frame_of([each for each in EVENTS if each.kind != "acked"]),
    "another channel": lambda frame: frame_of(
        [each._replace(channel="/b") if each.channel else each for each in EVENTS]
    ),
}


@pytest.mark.parametrize("what", FORGERIES)
@pytest.mark.parametrize("place", [2, 4])
def test_an_edited_frame_is_reported_even_if_it_is_the_newest(
    what: str, place: int, store: ValkeyServer
) -> None:
    writer = Writer(store)
    for n in range(5):
        writer.write(*(EVENTS if n == place else some_events(n, n + 1)))
    assert incidents(taken(store)) == []
    writer.forge(place, frame=FORGERIES[what](frame_of(EVENTS)))
    assert incidents(taken(store)) == [("frame.altered", place + 1, 1)]


def test_an_altered_frame_is_reported_once_whatever_is_read_later(store: ValkeyServer) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 3), each=3)
    writer.forge(2, frame=frame_of(some_events(7, 8)))
    journals = Journals(store.url, "holdfast")
    planner = Planner(journals, cores=1, accepts_loss=False)
    end = planner.advance({}, planner.newest(), None)
    (piece,) = planner.pieces({}, end)
    assert [(each.kind, each.seq) for each in piece.findings] == [("frame.altered", 3)]
    writer.write_all(some_events(3, 5), each=3)
    (piece,) = planner.pieces(end, planner.advance(end, planner.newest(), None))
    assert piece.findings == ()


def test_a_frame_with_another_epoch_is_altered_too(store: ValkeyServer) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 4), each=3)
    writer.forge(1, epoch="seed-7")
    assert incidents(taken(store)) == [("frame.altered", 2, 1)]


def test_a_removed_frame_is_noticed_even_if_later_ones_are_renumbered(
    store: ValkeyServer,
) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 5), each=3)
    writer.delete(writer.entries()[2])
    for place, seq in ((2, 3), (3, 4)):
        writer.forge(place, seq=seq)
    # The digest in the first renumbered frame is not that of the frame now before it.
    assert ("frame.altered", 2, 1) in incidents(taken(store))


def test_the_chain_of_digests_continues_over_runs(store: ValkeyServer) -> None:
    writer = Writer(store)
    for run in range(3):
        writer.epoch = f"seed-{run}"
        writer.write_all(some_events(3 * run, 3 * run + 2), each=3)
    assert incidents(taken(store)) == []
    writer.forge(1, frame=frame_of(some_events(7, 8)))
    assert incidents(taken(store)) == [("frame.altered", 2, 1)]


def trim(store: ValkeyServer, writer: Writer, before: str) -> None:
    """Trim as the server does, but at an entry and not at a millisecond."""
    call = scripts.trim(RedisKeys("holdfast"), "n1", read_ms=0, oldest_ms=0, size=0, now_ms=0)
    evaluate(store, writer.epoch, call._replace(args=["0-0", before, 10**9, 0]))


def test_frames_that_are_missing_at_the_beginning_are_told_apart_from_trimmed_ones(
    store: ValkeyServer,
) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 10), each=3)
    trim(store, writer, writer.entries()[2])
    rows = taken(store)
    assert (incidents(rows), acks(rows)) == ([("frame.beginning", 3, 2)], 8)
    writer.delete(*writer.entries()[:3])
    with pytest.raises(PipelineFailed, match=r"frames 1 to 5 were removed.*removed only 2"):
        taken(store)
    assert incidents(taken(store, accepts_loss=True)) == [("frame.gap", 6, 3)]
    trim(store, writer, writer.entries()[2])
    assert incidents(taken(store, accepts_loss=True)) == [("frame.gap", 8, 3)]


def test_frames_of_an_older_server_without_digests_are_read(store: ValkeyServer) -> None:
    writer = Writer(store)
    for seq in (1, 2):
        words = ("epoch", "seed-1", "seq", seq, "frame", frame_of(some_events(seq, seq + 1)))
        store.ask("XADD", writer.stream, "*", *words)
        store.ask("HINCRBY", RedisKeys("holdfast").meta, writer.stream, 1)
    assert incidents(taken(store)) == []
    writer.write_all(some_events(3, 5), each=3)
    assert (incidents(taken(store)), acks(taken(store))) == ([], 4)


@pytest.mark.parametrize("what", alien_frames())
def test_an_unreadable_frame_is_counted_and_the_others_are_read(
    what: str, store: ValkeyServer
) -> None:
    writer = Writer(store)
    writer.write(*some_events(0, 2))
    writer.write_frame(alien_frames()[what])
    writer.write(*some_events(2, 4))
    rows = taken(store)
    assert (incidents(rows), acks(rows)) == ([("frame.unreadable", 2, 1)], 4)


def test_a_foreign_entry_in_the_stream_is_counted(store: ValkeyServer) -> None:
    writer = Writer(store)
    writer.write(*some_events(0, 2))
    store.ask("XADD", writer.stream, "*", "hello", "world")
    writer.write(*some_events(2, 4))
    rows = taken(store)
    assert (incidents(rows), acks(rows)) == ([("frame.unreadable", 1, 1)], 4)


def test_a_frame_of_a_newer_server_stops_an_ingest_unless_it_accepts_loss(
    store: ValkeyServer,
) -> None:
    writer = Writer(store)
    writer.write(*some_events(0, 2))
    line, _, body = frame_of(some_events(2, 3)).partition(b"\n")
    writer.write_frame(orjson.dumps({**orjson.loads(line), "v": VERSION + 1}) + b"\n" + body)
    with pytest.raises(PipelineFailed, match="newer holdfast: update"):
        taken(store)
    assert incidents(taken(store, accepts_loss=True)) == [("frame.newer", 2, 1)]


def test_an_offset_is_the_same_after_it_was_stored_as_json(store: ValkeyServer) -> None:
    Writer(store).write_all(some_events(0, 4), each=3)
    planner = Planner(Journals(store.url, "holdfast"), cores=1, accepts_loss=False)
    end = planner.advance({}, planner.newest(), 6)
    again = orjson.loads(orjson.dumps(end))
    assert Position.of(again["n1"]) == Position.of(end["n1"])
    (piece,) = planner.pieces(again, planner.advance(again, planner.newest(), None))
    assert piece.after == end["n1"]["id"]


def test_an_empty_store_has_no_events(store: ValkeyServer) -> None:
    assert taken(store) == []


def test_a_store_that_goes_away_while_it_is_read_is_named(tmp_path: Path) -> None:
    with ValkeyServer() as store:
        Writer(store).write_all(some_events(0, 4), each=3)
        planner = Planner(Journals(store.url, "holdfast"), cores=1, accepts_loss=False)
        (piece,) = planner.pieces({}, planner.advance({}, planner.newest(), None))
    with pytest.raises(PipelineFailed, match=rf"{store.url}: the store does not answer"):
        list(write_piece(Source(store.url), tmp_path, piece))


def test_errors_of_the_store_name_the_remedy_but_no_password() -> None:
    url = "redis://joe:secret@localhost:1/2"
    told = {
        RedisConnectionError("refused"): "does not answer (refused). Is the server running?",
        AuthenticationError("NOAUTH"): "redis://USER:PASSWORD@HOST",
        ResponseError("WRONGTYPE"): "is not a store of Holdfast, or it is full: WRONGTYPE",
    }
    for error, words in told.items():
        with pytest.raises(PipelineFailed) as failed, answering(url):
            raise error
        assert words in str(failed.value)
        assert str(failed.value).startswith("redis://localhost:1/2: ")


@pytest.mark.beside
def test_a_store_that_is_away_is_named(spark: "SparkSession", tmp_path: Path) -> None:
    url = f"unix://{tmp_path}/nobody"
    with pytest.raises(PipelineFailed, match=r"nobody.*does not answer"):
        take_what_is_there(spark, Source(url), Lake(tmp_path / "lake"), lambda taken: None)


def test_batches_are_bounded_and_continue_where_the_last_one_ended(store: ValkeyServer) -> None:
    Writer(store).write_all(some_events(0, 10), each=6)
    planner = Planner(Journals(store.url, "holdfast"), cores=1, accepts_loss=False)
    offset: Offset = {}
    read = list[int]()
    while planner.pieces(offset, end := planner.advance(offset, planner.newest(), 12)):
        read.append(end["n1"]["seq"])
        offset = end
    assert read == [2, 4, 5]


def test_frames_that_are_removed_between_two_batches_stop_the_second(store: ValkeyServer) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 4), each=3)
    planner = Planner(Journals(store.url, "holdfast"), cores=1, accepts_loss=False)
    end = planner.advance({}, planner.newest(), None)
    writer.write_all(some_events(4, 10), each=3)
    writer.delete(*writer.entries()[4:6])
    with pytest.raises(PipelineFailed, match="frames 5 to 6 are missing"):
        planner.advance(end, planner.newest(), None)


def test_a_batch_that_is_trimmed_before_it_is_read_is_an_error(store: ValkeyServer) -> None:
    writer = Writer(store)
    writer.write_all(some_events(0, 4), each=3)
    planner = Planner(Journals(store.url, "holdfast"), cores=1, accepts_loss=True)
    end = planner.advance({}, planner.newest(), None)
    (piece,) = planner.pieces({}, end)
    # The server trims the oldest frames first.
    for gone in (1, 4):
        writer.delete(*writer.entries()[:gone])
        with pytest.raises(PipelineFailed, match="trimmed while it was read"):
            list(read_piece(Journals(store.url, "holdfast"), piece, accepts_loss=True))
    with pytest.raises(PipelineFailed, match="trimmed before it was read"):
        planner.pieces({}, end)
