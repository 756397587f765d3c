"""A real server that is killed, and an audit of what it had written down until then."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.audit import violations
from pipeline.ingest import Source, take_what_is_there
from pipeline.lake import Lake
from pipeline.reports.flow import funnel
from pipeline.reports.tables import tables_of
from pipeline.source.streams import Journals
from tests.integration.talker import Talker
from tests.serving import Server
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = 20


def receiver(url: str, name: str) -> Talker:
    talker = Talker(url)
    options = {"session": f"{name}/1", "retries": 0}
    talker.handshake(version="1.0", ext={"ack": True, "delivery": options})
    talker.send("/meta/subscribe", subscription="/orders/**")
    talker.connect(advice={"timeout": 0})
    return talker


def settle(talker: Talker) -> int:
    """Take what there is; refuse each fifth, ack the rest, and say how much it was."""
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


def test_what_a_killed_server_wrote_down_is_whole(
    spark: "SparkSession", store: ValkeyServer, tmp_path: Path
) -> None:
    server = Server({"journal": True, "redis": store.url})
    try:
        ann, _ = receiver(server.url, "ann"), receiver(server.url, "bob")
        publisher = Talker(server.url)
        publisher.handshake(version="1.0")
        for number in range(MESSAGES):
            publisher.send(f"/orders/{number % 2}", data={"number": number})
        assert settle(ann) == MESSAGES
        # The server answered for all that is kept; what is passing may be on its way.
        server.process.kill()
        server.process.wait()
    finally:
        server.stop()
    lake = Lake(tmp_path / "lake")
    taken = take_what_is_there(spark, Source(store.url), lake, lambda taken: None)
    assert taken.lacking == {}
    assert sum(Journals(store.url, "holdfast").numbered().values()) > 0
    events = lake.table(spark, "events")
    assert violations(events).collect() == []
    told = funnel(tables_of(lake, spark)).agg({"copies": "sum", "dead": "sum", "acked": "sum"})
    (sums,) = [row.asDict() for row in told.collect()]
    assert sums["sum(copies)"] == 2 * MESSAGES
    # Acks need not have reached the store; refusals were waited for.
    assert sums["sum(dead)"] <= MESSAGES // 5
    assert sums["sum(acked)"] <= MESSAGES - MESSAGES // 5
