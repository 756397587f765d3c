"""What is neither in a session nor in the store goes on, too."""

from typing import Any

import pytest

from holdfast.delivery.shared_queues.lent_work import LentWork
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client, Json
from tests.unit.bayeux.leaving.pictures import differences, picture
from tests.unit.bayeux.leaving.successors import LeavingServer, at
from tests.unit.bayeux.second_lives import connect, no, ok, seqs
from tests.unit.extensions.requesting import POWER, Person, requester, responder

PASSING: Json = {"delivery": {"persistent": False}}


def left_to_another(server: LeavingServer, *clients: Client) -> LeavingServer:
    """The next server, which has the same; these clients go on with it."""
    left = server.leave()
    had = picture(server)
    successor = server.follower(left, is_turned=False)
    assert differences(picture(successor), had) == []
    successor.turn()
    for client in clients:
        at(client, successor)
        if client.socket is not None:
            client.socket.session = None
    return successor


def of_subject(server: LeavingServer, **options: Any) -> Client:
    """A client of the subject joe without a number."""
    client = server.guest()
    ext = {"delivery": {"session": "joe", "responseTimeout": 60_000, **options}}
    assert client.handshake(ext=ext).replies[0]["successful"]
    server.turn()
    connect(client, None)
    return client


@pytest.mark.parametrize("ext", [PASSING, {}])
def test_work_that_a_receiver_refused_goes_to_another_one_only(ext: Json) -> None:
    server = LeavingServer(channels={"/jobs": ChannelSettings(work_queue=True)})
    first, second = of_subject(server), of_subject(server, queue={"maxEntries": 1})
    boss = server.connected()
    first.subscribe("/jobs")
    boss.publish("/jobs", 1, ext=ext)
    server.turn()
    (one,) = seqs(connect(first, None))
    second.subscribe("/jobs")
    boss.publish("/jobs", 2, ext=ext)
    server.turn()
    (two,) = seqs(connect(second, None))
    connect(first, None, no(one, "user.update.illegalArgument"))
    server = left_to_another(server, first, second, boss)
    assert connect(first, None).data == []
    connect(second, None, ok(two))
    server.turn()
    assert connect(second, None).data == [1]
    assert server.balances()


@pytest.mark.parametrize("ext", [PASSING, {}])
def test_work_that_another_shard_has_and_forgets_is_marked_for_the_next_receiver(ext: Json) -> None:
    server = LeavingServer(channels={"/jobs": ChannelSettings(work_queue=True)})
    boss, worker = server.connected(), of_subject(server)
    boss.publish("/jobs", 1, ext=ext)
    server.turn()
    work = server.bayeux.state.work
    source = work.of("/jobs")
    assert source is not None
    lent = LentWork(server.bayeux.state.hub, work.of, work.dispute)
    [message] = source.queue.new
    source.queue.remove_messages((message,))
    lent.begin(source, message, "far/1")
    server = server.succeeded(is_strict=False)
    at(worker, server)
    worker.subscribe("/jobs")
    server.turn()
    [event] = connect(worker, None).events
    assert event["ext"]["delivery"]["redelivered"]


@pytest.mark.parametrize("ext", [PASSING, {}])
def test_a_message_to_a_subject_waits_for_room(ext: Json) -> None:
    server = LeavingServer()
    joe, ann = of_subject(server, queue={"maxEntries": 1}), server.connected()
    content = {"destinations": ["joe"], "content": 0}
    for number in range(3):
        ann.publish("/service/ptp", content | {"content": number}, ext=ext)
        server.turn()
    server = left_to_another(server, joe, ann)
    heard: list[object] = []
    verdicts: list[Json] = []
    for _ in range(8):
        answer = connect(joe, None, *verdicts)
        heard += [event["data"] for event in answer.events]
        verdicts = [ok(seq) for seq in seqs(answer)]
        server.turn()
    assert heard == [0, 1, 2]
    assert server.balances()


@pytest.mark.parametrize("ext", [PASSING, {"delivery": {}}])
def test_a_delayed_message_comes_when_it_is_due(ext: Json) -> None:
    server = LeavingServer()
    client = server.connected()
    client.subscribe("/a")
    delayed = {"delivery": {**ext["delivery"], "delay": 2000}}
    asked = client.publish("/a", 1, ext=delayed)
    server.turn()
    assert asked.reply["successful"]
    server = left_to_another(server, client)
    assert connect(client, None).data == []
    server.advance(2.5)
    assert connect(client, None).data == [1]
    server = left_to_another(server, client)
    server.advance(3.0)
    assert connect(client, None).data == []


def go_on(person: Person, server: LeavingServer) -> None:
    at(person, server)
    person.connect()
    server.turn()


def test_an_answer_reaches_the_client_that_asked_the_server_before() -> None:
    server = LeavingServer()
    asker, helper = requester(server), responder(server)
    asker.ask(1)
    (event,) = helper.heard()
    server = left_to_another(server, asker, helper)
    go_on(asker, server)
    go_on(helper, server)
    assert helper.reply(event, 2)["successful"]
    assert [each["data"] for each in asker.heard() if "data" in each] == [2]
    assert not helper.reply(event, 3)["successful"]


def test_a_request_without_an_answer_ends_at_its_deadline() -> None:
    server = LeavingServer()
    asker, helper = requester(server), responder(server)
    asker.ask(1, timeout=5000)
    server = left_to_another(server, asker, helper)
    server.advance(2.0)
    server = left_to_another(server, asker, helper)
    go_on(asker, server)
    asker.heard()
    server.advance(4.0)
    (told,) = [each for each in asker.heard() if each["channel"] == asker.address()]
    assert told["error"] == f"408:{POWER}:timeout"
    assert server.bayeux.state.requests.outstanding == 0


def test_members_of_a_channel_keep_their_order() -> None:
    server = LeavingServer(channels={"/room": ChannelSettings(presence=True)})
    clients = [server.connected() for _ in range(3)]
    for client in clients:
        client.subscribe("/room")
        server.advance(0.1)
    clients[0].unsubscribe("/room")
    clients[0].subscribe("/room")
    left_to_another(server, *clients)


def test_a_history_goes_on_without_a_gap() -> None:
    server = LeavingServer(channels={"/kept": ChannelSettings(history=3)})
    client = server.client(ext={"replay": {}})
    client.subscribe("/kept")
    publisher = server.connected()
    for number in range(5):
        publisher.publish("/kept", number, ext=PASSING if number % 2 else {})
        server.turn()
    answer = connect(client, None)
    cursors = [event["ext"]["replay"]["cursor"] for event in answer.events]
    assert len(cursors) == 5
    server = left_to_another(server, client, publisher)
    late = server.connected()
    ext = {"replay": {"cursor": cursors[1], "epoch": ""}}
    asked = late.send({"channel": "/meta/subscribe", "subscription": "/kept", "ext": ext})
    assert asked.elements[0]["ext"]["replay"]["recovered"]
    assert [*asked.data, *connect(late, None).data] == [2, 3, 4]
    ext = {"replay": {"cursor": cursors[0], "epoch": ""}}
    other = server.connected()
    asked = other.send({"channel": "/meta/subscribe", "subscription": "/kept", "ext": ext})
    assert not asked.elements[0]["ext"]["replay"]["recovered"]


def test_a_client_whose_session_another_took_over_does_not_come_back() -> None:
    server = LeavingServer()
    former = server.guest()
    former.handshake(ext={"delivery": {"session": "joe/1"}})
    server.turn()
    connect(former, None)
    now = Client(server, browser=former.browser)
    now.handshake(ext={"delivery": {"session": "joe/1"}})
    server.turn()
    left_to_another(server, former, now)
    reply = former.connect().reply
    assert reply["advice"]["reconnect"] == "none"


def test_requests_on_a_channel_that_nobody_listens_to_leave_nothing() -> None:
    server = LeavingServer()
    asker = requester(server)
    asker.ask(1, channel=POWER + "/none")
    left_to_another(server, asker)
