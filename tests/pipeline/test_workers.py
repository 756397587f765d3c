"""Real workers, each with a store of its own: the tables have the journals of all of them."""

import asyncio
from pathlib import Path

from typer.testing import CliRunner

from holdfast.cli.main import program
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.flow import FUNNEL
from holdfast.pipeline.reports.receivers import HOLDBACK_ADVICE
from tests.pipeline.audited import findings_of, violations
from tests.store.store_process import until
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Json, Person

MESSAGES = 12
LIMIT_S = 60.0


async def subscribed(person: Person, session: str | None = None) -> None:
    assert (await person.handshake(session))["successful"]
    reply = await person.reply("/meta/subscribe", subscription="/orders")
    assert reply["successful"], reply


async def take_all(person: Person) -> None:
    """Hear and acknowledge all messages."""
    found, ack = 0, 0
    for _ in range(50):
        replies = await person.connect(1000, ack=ack)
        found += sum("data" in each for each in replies)
        ack = replies[-1]["ext"]["ack"]
        if found == MESSAGES:
            await person.connect(0, ack=ack)
            return
    raise AssertionError(f"{found} messages came")


async def serve(home: Path) -> None:
    """Run two workers until they have told all of it."""
    async with workers(home, chat=False, journal=True) as at:
        await let_them_talk(at)


async def let_them_talk(at: Workers) -> None:
    """Publish at one worker; named and plain sessions of both hear all of it."""
    named = [at.subject_of(shard) for shard in range(2)]
    people = [at.person(shard) for shard in range(2)]
    plain = at.person(1)
    for person, name in zip(people, named, strict=True):
        await subscribed(person, f"{name}/1")
    await subscribed(plain)
    writer = at.person(0)
    await writer.handshake()
    for number in range(MESSAGES):
        options = {"persistent": False} if number % 3 == 0 else {}
        reply = await writer.reply("/orders", data=number, ext={"delivery": options})
        assert reply["successful"], reply
    await asyncio.gather(*map(take_all, (*people, plain)))


async def share_work(home: Path) -> None:
    """Two sessions at two workers share work that one of these keeps; some is refused once."""
    rules = {"/jobs": {"work_queue": True}}
    async with workers(home, chat=False, journal=True, channels=rules) as at:
        people = [at.person(shard) for shard in range(2)]
        for shard, person in enumerate(people):
            assert (await person.handshake(f"{at.subject_of(shard)}/1"))["successful"]
            reply = await person.reply("/meta/subscribe", subscription="/jobs")
            assert reply["successful"], reply
        writer = at.person(0)
        await writer.handshake()
        for number in range(MESSAGES):
            options = {"persistent": False} if number % 3 == 0 else {}
            reply = await writer.reply("/jobs", data=number, ext={"delivery": options})
            assert reply["successful"], reply
        await do_all(people)
        # The worker that keeps the work is told a little later what became of it.
        counters = [each.bayeux.state.counters for each in at.servers]
        await until(lambda: all(each.entered() == each.settled() for each in counters))


async def do_all(people: list[Person]) -> None:
    """Do all work, some of which the first receiver refuses."""
    refused: set[int] = set()
    done: list[int] = []
    acks = [0, 0]
    verdicts: list[list[Json]] = [[], []]
    async with asyncio.timeout(LIMIT_S):
        while len(done) < MESSAGES or any(verdicts):
            for each, person in enumerate(people):
                delivery = {"verdicts": verdicts[each]}
                replies = await person.connect(100, ack=acks[each], delivery=delivery)
                verdicts[each] = []
                for event in replies[:-1]:
                    number, seq = event["data"], event["ext"]["delivery"]["seq"]
                    if number % 4 == 0 and number not in refused:
                        refused.add(number)
                        verdicts[each].append({"seq": seq, "errorCode": "user.update.error"})
                    else:
                        done.append(number)
                acks[each] = replies[-1]["ext"]["ack"]
    for each, person in enumerate(people):
        await person.connect(0, ack=acks[each])
    assert sorted(done) == [*range(MESSAGES)]


def test_work_of_another_worker_is_one_copy_in_the_tables(tmp_path: Path) -> None:
    asyncio.run(share_work(tmp_path))
    lake = ingested(tmp_path)
    with of_lake(lake) as tables:
        [row] = tables.ask(FUNNEL).by_name()
        [advice] = tables.ask(HOLDBACK_ADVICE).by_name()
    numbers = {name: row[name] for name in ("published", "copies", "acked", "open")}
    assert numbers == {"published": MESSAGES, "copies": MESSAGES, "acked": MESSAGES, "open": 0}
    # What was refused has left its session, whichever worker that has; the next one acked it.
    refused = MESSAGES // 4
    assert row["moves"] == refused
    assert (advice["retried"], advice["succeeded"], advice["max_attempts"]) == (refused, refused, 2)
    assert violations(findings_of(lake)) == []


def ingested(home: Path) -> Lake:
    words = ["pipeline", "ingest", "--once", "--engine", "local", "--data", str(home / "data")]
    # The workers have stopped: their stores are started again.
    done = CliRunner().invoke(program, words)
    assert done.exit_code == 0, done.output
    return Lake(home / "data" / "lake")


def test_the_journals_of_real_workers_tell_of_each_message_once(tmp_path: Path) -> None:
    asyncio.run(serve(tmp_path))
    lake = ingested(tmp_path)
    with of_lake(lake) as tables:
        [row] = tables.ask(FUNNEL).by_name()
    numbers = {name: row[name] for name in ("published", "copies", "acked", "open")}
    copies = 3 * MESSAGES
    assert numbers == {"published": MESSAGES, "copies": copies, "acked": copies, "open": 0}
    assert violations(findings_of(lake)) == []
    assert {*lake.positions()} == {"holdfast", "holdfast/1"}
