"""The journal records the changes of sessions, of their dispatchers and of queue holds."""

from holdfast.journal.schema import Kind
from tests.unit.bayeux.harness import server_of
from tests.unit.bayeux.second_lives import connect, named, publish, take
from tests.unit.journal.ledger import Writing


class Scene:
    """A server with a journal."""

    def __init__(self) -> None:
        self.store = Writing()
        self.server = server_of(keeper=self.store, journal=self.store.writer)

    def changes(self) -> list[str]:
        """The changes since the last call: what, how, and of which session."""
        found = [
            " ".join(filter(None, (event.kind, event.what, event.receiver)))
            for event in self.store.events()
            if event.kind in (Kind.SESSION, Kind.DISPATCHER, Kind.HELD, Kind.RELEASED)
        ]
        self.store.shelf.frames.clear()
        return found


def test_the_journal_records_that_a_session_is_opened_taken_over_left_and_ended() -> None:
    scene = Scene()
    named(scene.server)
    new = scene.server.guest()
    take(new)
    new.disconnect()
    again = scene.server.guest()
    take(again)
    again.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    assert scene.changes() == [
        "session opened joe/1",
        "dispatcher alive joe/1",
        "session taken_over joe/1",
        "session left joe/1",
        "session taken_over joe/1",
        "session ended joe/1",
    ]


def test_the_journal_records_who_held_a_queue_back_and_how_the_hold_ended() -> None:
    scene = Scene()
    client = named(scene.server)
    publish(scene.server, 1)
    connect(client, 1)
    verdict = {"seq": client.session.queue.seq, "errorCode": "user.update.holdback"}
    connect(client, None, verdict)
    bayeux = scene.server.bayeux
    bayeux.life.resume(client.session, scene.server.now)
    now_ms = bayeux.state.node.now_ms()
    bayeux.life.hold_back(
        client.session, "lunch", who="ops", now=scene.server.now, until_ms=now_ms + 1000
    )
    scene.server.advance(2.0)
    asleep = scene.server.client(
        ext={"ack": True, "delivery": {"session": "ann/1", "dispatcherActive": False}}
    )
    assert asleep.session.key == "ann/1"
    assert scene.changes() == [
        "session opened joe/1",
        "dispatcher alive joe/1",
        "held verdict joe/1",
        "released operator joe/1",
        "held operator joe/1",
        "released until joe/1",
        "session opened ann/1",
        "held client ann/1",
    ]


def test_the_journal_records_that_a_dispatcher_is_polling_alive_again_and_dead() -> None:
    scene = Scene()
    options = {"session": "joe/1", "retries": 1, "delay": 1000}
    client = scene.server.client(ext={"ack": True, "delivery": options})
    connect(client, 0)
    scene.server.advance(10.2)
    connect(client, 0)
    assert scene.changes()[1:] == [
        "dispatcher alive joe/1",
        "dispatcher polling joe/1",
        "dispatcher alive joe/1",
    ]
    scene.server.advance(30.0)
    assert scene.changes() == [
        "dispatcher polling joe/1",
        "dispatcher dead joe/1",
        "session given_up joe/1",
    ]


def test_the_journal_records_what_did_not_arrive_from_another_shard() -> None:
    store = Writing()
    store.writer.missed(2, 7)
    store.writer.missed(3, 0)
    found = [(each.what, each.number) for each in store.events() if each.kind == Kind.GAP]
    assert found == [("2", 7), ("3", None)]
