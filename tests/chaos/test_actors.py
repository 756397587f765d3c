"""Publishers and receivers record exactly what happened to them."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.history import HistoryWriter, Operation, Phase, What, read
from tests.chaos.manners import HOLDBACK, Manner
from tests.chaos.publisher import Publisher, fingerprint
from tests.chaos.receiver import Receiver
from tests.chaos.talker import Denied, Lost, Message, NotSent, Talker

GONE = "402::session_unknown"


class ScriptedTalker(Talker):
    """Answers connects and publishes as the test says, and everything else with success."""

    def __init__(self) -> None:
        self.client_id = None
        self.sessions = 0
        self.asked: list[Mapping[str, Any]] = []
        # Where subscriptions were to begin.
        self.places: list[Any] = []
        self.answers: list[list[Message] | Exception] = []

    async def close(self) -> None:
        pass

    async def ask(self, message: Mapping[str, Any]) -> list[Message]:
        channel = message["channel"]
        if channel == "/meta/handshake":
            self.asked.append(message)
            return [yes(channel, clientId=f"client {self.sessions}")]
        if channel == "/meta/subscribe":
            self.places += [message["ext"]] if "ext" in message else []
            return [yes(channel)]
        self.asked.append(message)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def last(self) -> Mapping[str, Any]:
        return self.asked[-1]


def yes(channel: str, **fields: Any) -> Message:
    return {"channel": channel, "successful": True, **fields}


def no(channel: str, error: str) -> list[Message]:
    return [{"channel": channel, "successful": False, "error": error}]


def batch(number: int, *events: Message) -> list[Message]:
    return [*events, yes("/meta/connect", ext={"ack": number})]


def event(tag: str, seq: int, **delivery: Any) -> Message:
    return {"channel": "/a", "data": {"tag": tag}, "ext": {"delivery": {"seq": seq, **delivery}}}


class Scene:
    """One actor, its talker and the history."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.history = HistoryWriter(path)
        self.talker = ScriptedTalker()

    def receiver(self, manner: Manner, **more: Any) -> Receiver:
        return Receiver("joe/1", self.talker, self.history, channels=["/a"], manner=manner, **more)

    def publisher(self, **manner: Any) -> Publisher:
        return Publisher("p", self.talker, self.history, Random(1), channels=["/a"], **manner)

    def found(self, what: What) -> list[Operation]:
        return [operation for operation in read(self.path) if operation.what is what]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path / "history.ndjson")
    yield scene
    scene.history.close()


async def steps(receiver: Receiver, count: int) -> None:
    for _ in range(count):
        await receiver.step()


# Receivers


async def test_deliveries_are_acknowledged_with_the_next_connect(scene: Scene) -> None:
    scene.talker.answers = [batch(1, event("p-1", 1)), batch(2)]
    await steps(scene.receiver(Manner()), 3)
    (delivery,) = scene.found(What.DELIVER)
    (settlement,) = scene.found(What.SETTLE)
    connects = scene.found(What.CONNECT)
    assert delivery.fields["sha"] == fingerprint({"tag": "p-1"})
    assert delivery.fields["asked"] == connects[0].begun_ns
    assert settlement.is_ok
    assert settlement.begun_ns <= connects[1].begun_ns
    assert scene.talker.last["ext"] == {"ack": 1}
    assert [connect.fields["batch"] for connect in connects] == [1, 2]


async def test_every_receiver_asks_for_what_it_needs(scene: Scene) -> None:
    await scene.receiver(Manner()).step()
    ext = scene.talker.last["ext"]
    assert ext == {"ack": True, "delivery": {"retries": -1, "session": "joe/1"}}
    scene.talker.client_id = None
    await scene.receiver(Manner(gives_verdicts=False), is_named=False).step()
    assert scene.talker.last["ext"] == {"ack": True}


async def test_verdicts_that_may_be_lost_are_repeated(scene: Scene) -> None:
    scene.talker.answers = [batch(1, event("p-1", 7)), Lost(), batch(2)]
    await steps(scene.receiver(Manner(is_explicit=True)), 4)
    outcomes = [settlement.outcome for settlement in scene.found(What.SETTLE)]
    assert outcomes == [Phase.INFO, Phase.OK]
    verdicts = [{"seq": 7, "state": "OK"}]
    assert scene.talker.last["ext"] == {"ack": 1, "delivery": {"verdicts": verdicts}}


async def test_verdicts_sent_with_a_lost_session_have_an_unknown_outcome(
    scene: Scene,
) -> None:
    scene.talker.answers = [batch(1, event("p-1", 1)), no("/meta/connect", GONE), batch(1)]
    await steps(scene.receiver(Manner()), 5)
    (settlement,) = scene.found(What.SETTLE)
    assert settlement.outcome is Phase.INFO
    assert scene.talker.sessions == 2
    assert scene.talker.last["ext"] == {"ack": 0}
    # A named session keeps its subscriptions, but this talker's answers do not say that it resumed.
    assert len(scene.found(What.SUBSCRIBE)) == 2
    assert not scene.found(What.SESSION_LOST)


async def test_an_unnamed_receiver_records_that_its_session_is_lost(scene: Scene) -> None:
    scene.talker.answers = [no("/meta/connect", GONE)]
    await steps(scene.receiver(Manner(gives_verdicts=False), is_named=False), 2)
    (lost,) = scene.found(What.SESSION_LOST)
    assert lost.fields == {"subscriber": "joe/1"}


async def test_events_to_receivers_without_verdicts_have_no_delivery_data(scene: Scene) -> None:
    scene.talker.answers = [batch(1, event("p-1", 1, redelivered=3))]
    await steps(scene.receiver(Manner(gives_verdicts=False), is_named=False), 2)
    (delivery,) = scene.found(What.DELIVER)
    assert (delivery.fields["seq"], delivery.fields["redelivered"]) == (0, None)


async def test_refusals_depend_on_the_message_alone(scene: Scene) -> None:
    scene.talker.answers = [batch(1, event("p-1", 1)), batch(2)]
    await steps(scene.receiver(Manner(refuses_one_in=1)), 3)
    (settlement,) = scene.found(What.SETTLE)
    (said,) = settlement.fields["entries"]
    (verdict,) = scene.talker.last["ext"]["delivery"]["verdicts"]
    assert said["code"] == verdict["errorCode"] != ""


async def test_entries_behind_a_holdback_are_not_settled(scene: Scene) -> None:
    receiver = scene.receiver(Manner(holds_back_at=1))
    scene.talker.answers = [batch(1, event("p-1", 1), event("p-2", 2)), batch(2)]
    await steps(receiver, 3)
    (settlement,) = scene.found(What.SETTLE)
    (hold,) = scene.found(What.HOLD)
    assert [entry["code"] for entry in settlement.fields["entries"]] == [HOLDBACK]
    assert hold.is_ok
    assert hold.begun_ns <= scene.found(What.CONNECT)[1].begun_ns
    assert receiver.is_held


async def test_a_receiver_that_held_back_connects_and_then_resumes(scene: Scene) -> None:
    receiver = scene.receiver(Manner(holds_back_at=1, held_s=0.0))
    scene.talker.answers = [batch(1, event("p-1", 1)), batch(2)]
    await steps(receiver, 4)
    assert not receiver.is_held
    assert scene.talker.last["ext"]["delivery"]["dispatcherActive"] is True
    (resume,) = scene.found(What.RESUME)
    assert resume.is_ok


async def test_a_receiver_that_stumbles_asks_to_get_the_message_again_soon(scene: Scene) -> None:
    receiver = scene.receiver(Manner(stumbles_at=1))
    again = event("p-1", 3, redelivered=1)
    scene.talker.answers = [batch(1, event("p-1", 1), event("p-2", 2)), batch(2, again), batch(3)]
    await steps(receiver, 3)
    (verdict,) = scene.talker.last["ext"]["delivery"]["verdicts"]
    assert verdict["errorCode"] == "communication.noConnection"
    assert verdict["delay"] > 0
    await receiver.step()
    assert not receiver.is_held
    first, second = scene.found(What.SETTLE)
    assert [entry["code"] for entry in first.fields["entries"]] == ["communication.noConnection"]
    assert [entry["code"] for entry in second.fields["entries"]] == [""]


async def test_a_processed_message_is_not_processed_again(scene: Scene) -> None:
    manner = Manner(is_explicit=True)
    receiver = scene.receiver(manner)
    again = event("p-1", 2, redelivered=1)
    scene.talker.answers = [
        batch(1, event("p-1", 1)),
        no("/meta/connect", GONE),
        batch(1, again),
        batch(2),
    ]
    await steps(receiver, 6)
    assert [each.fields["redelivered"] for each in scene.found(What.DELIVER)] == [0, 1]
    assert scene.talker.last["ext"]["delivery"]["verdicts"] == [{"seq": 2, "state": "OK"}]


async def test_a_crash_forgets_what_arrived(scene: Scene) -> None:
    scene.talker.answers = [batch(1), batch(2, event("p-1", 1))]
    await steps(scene.receiver(Manner(crashes_after=3)), 4)
    assert len(scene.found(What.DELIVER)) == 1
    assert not scene.found(What.SETTLE)
    assert scene.talker.sessions == 2


async def test_a_false_ack_carries_no_verdicts(scene: Scene) -> None:
    scene.talker.answers = [batch(1, event("p-1", 1)), batch(2, event("p-1", 2)), batch(3)]
    await steps(scene.receiver(Manner(lies_after=2)), 4)
    assert [connect.fields["ack"] for connect in scene.found(What.CONNECT)] == [0, 1_000_000, 2]
    (settlement,) = scene.found(What.SETTLE)
    assert [entry["seq"] for entry in settlement.fields["entries"]] == [2]


async def test_the_last_verdicts_are_sent_at_the_end(scene: Scene) -> None:
    stop = asyncio.Event()
    scene.talker.answers = [batch(1, event("p-1", 1)), batch(2)]
    receiver = scene.receiver(Manner())
    await steps(receiver, 2)
    stop.set()
    await receiver.run(stop)
    assert scene.talker.last["advice"] == {"timeout": 0}
    assert scene.found(What.SETTLE)[0].is_ok


async def test_a_receiver_that_leaves_forgets_its_entries_and_returns(scene: Scene) -> None:
    receiver = scene.receiver(Manner(leaves_after=1))
    scene.talker.answers = [batch(1, event("p-1", 1)), [yes("/meta/disconnect")], batch(1)]
    await steps(receiver, 5)
    (ended,) = scene.found(What.END)
    assert ended.is_ok
    assert scene.talker.asked[2]["ext"] == {"delivery": {"end": True}}
    assert scene.talker.sessions == 2
    assert not scene.found(What.SETTLE)


async def test_a_receiver_that_goes_on_subscribes_from_its_last_cursor(scene: Scene) -> None:
    def caught_up(number: int, cursor: int) -> list[Message]:
        return [yes("/meta/connect", ext={"ack": number, "replay": {"cursor": cursor}})]

    manner = Manner(gives_verdicts=False, goes_on=True)
    receiver = scene.receiver(manner, is_named=False)
    scene.talker.answers = [caught_up(1, 7), no("/meta/connect", GONE), caught_up(1, 9)]
    await steps(receiver, 5)
    (first,) = scene.found(What.SUBSCRIBE)
    (again,) = scene.found(What.GO_ON)
    assert (first.fields["cursor"], again.fields["cursor"]) == (-2, 7)
    assert scene.talker.places == [{"replay": -2}, {"replay": 7}]
    assert first.fields["is_durable"]
    assert not scene.found(What.SESSION_LOST)


# Publishers


UNSURE = "503:communication.noConnection,unknown:nobody knows"
SURE = "503:communication.noConnection:the store is away"
NOBODY = "404:user.ptp.unknownDestination,client/joe/1:destination_unknown"


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([[yes("/a")]], Phase.OK),
        ([NotSent()], Phase.FAIL),
        ([no("/a", SURE)], Phase.FAIL),
        ([no("/a", GONE)], Phase.FAIL),
        ([no("/a", UNSURE)], Phase.INFO),
        ([Lost()], Phase.INFO),
    ],
)
async def test_a_careless_publisher_asks_once(
    scene: Scene, answers: list[Any], outcome: Phase
) -> None:
    scene.talker.answers = answers
    await scene.publisher(is_careful=False).publish("/a", asyncio.Event())
    (publish,) = scene.found(What.PUBLISH)
    assert publish.outcome is outcome


async def test_a_careful_publisher_repeats_what_was_refused(scene: Scene) -> None:
    scene.talker.answers = [no("/a", SURE), NotSent(), no("/a", GONE), [yes("/a")]]
    await scene.publisher().publish("/a", asyncio.Event())
    (publish,) = scene.found(What.PUBLISH)
    assert publish.is_ok


async def test_a_careful_publisher_does_not_repeat_what_may_be_stored(scene: Scene) -> None:
    scene.talker.answers = [no("/a", SURE), Lost(), [yes("/a")]]
    await scene.publisher().publish("/a", asyncio.Event())
    (publish,) = scene.found(What.PUBLISH)
    assert publish.outcome is Phase.INFO


async def test_a_publisher_with_keys_repeats_until_it_knows_the_outcome(scene: Scene) -> None:
    answered = yes("/a", ext={"delivery": {"state": "OK", "rcvTimestamp": "7"}})
    scene.talker.answers = [Lost(), no("/a", UNSURE), no("/a", SURE), NotSent(), [answered]]
    await scene.publisher(has_keys=True).publish("/a", asyncio.Event())
    (publish,) = scene.found(What.PUBLISH)
    assert publish.is_ok
    assert publish.fields["received"] == "7"
    said = [each for each in scene.talker.asked if each["channel"] == "/a"]
    assert [each["ext"]["delivery"]["key"] for each in said] == ["p-1"] * 5


async def test_destinations_and_those_that_took_it_are_recorded(scene: Scene) -> None:
    found = [
        {"name": "client/ann", "state": "QUEUED"},
        {"name": "client/joe/1", "state": "ERROR", "errorCode": "user.ptp.unknownDestination"},
    ]
    answered = yes("/a", ext={"delivery": {"rcvTimestamp": "7", "destinations": found}})
    scene.talker.answers = [[answered], no("/a", NOBODY)]
    publisher = scene.publisher(addresses=("ann", "joe/1"))
    for _ in range(2):
        await publisher.publish("/a", asyncio.Event())
    first, second = scene.found(What.PUBLISH)
    assert set(first.fields["destinations"]) <= {"ann", "joe/1"}
    assert first.fields["taken"] == ["ann"]
    for each in scene.talker.last["ext"]["delivery"]["destinations"]:
        assert each in ("joe/1", {"name": "ann", "forceQueuing": True})
    # Nobody is asked twice whether somebody is there.
    assert second.outcome is Phase.FAIL


async def test_a_refusal_after_a_lost_reply_leaves_the_outcome_unknown(scene: Scene) -> None:
    stop = asyncio.Event()
    stop.set()
    publisher = scene.publisher(has_keys=True)
    scene.talker.answers = [no("/a", SURE), Lost(), no("/a", SURE), no("/a", SURE)]
    await publisher.publish("/a", stop)
    stop.clear()
    asyncio.get_running_loop().call_later(0.15, stop.set)
    await publisher.publish("/a", stop)
    first, second = scene.found(What.PUBLISH)
    assert (first.outcome, second.outcome) == (Phase.FAIL, Phase.INFO)


async def test_a_publisher_that_forgets_a_reply_asks_again(scene: Scene) -> None:
    answered = yes("/a", ext={"delivery": {"state": "OK", "rcvTimestamp": "7"}})
    publisher = scene.publisher(has_keys=True)
    scene.talker.answers = [[answered], [answered], Lost()]
    await publisher.publish("/a", asyncio.Event())
    for _ in range(2):
        await publisher.publish_again(*publisher._answered[0])
    again, lost = scene.found(What.REPEAT)
    assert (again.fields, again.outcome) == ({"tag": "p-1", "received": "7"}, Phase.OK)
    assert lost.outcome is Phase.INFO
    assert scene.talker.asked[1] == scene.talker.asked[2]


def test_errors_say_whether_the_session_is_unknown_and_the_outcome_unsure() -> None:
    assert Denied(GONE).is_session_unknown
    assert not Denied(GONE).is_unsure
    assert Denied(UNSURE).is_unsure
    assert not Denied(SURE).is_unsure
