"""A message whose store answers late comes behind later ones: readers that may lack it hear so."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Json, Server
from tests.unit.bayeux.leaving.successors import LeavingServer
from tests.unit.bayeux.publish.shards import World

# Its home is the second of two shards.
NEWS = "/home/a"
RULES = {"/home/*": ChannelSettings(history=5)}
# A server on its own, the home of two, and the other one.
PLACES = ["alone", "at home", "elsewhere"]


class Place:
    """A channel whose store has not answered for its second message, behind which a third came."""

    def __init__(self, where: str) -> None:
        self._world = None if where == "alone" else World(2, channels=RULES)
        self._shard = 0 if where == "elsewhere" else 1
        self._alone = LeavingServer(channels=RULES)
        self.publish(1)
        self._publish_late()
        self.publish(3)

    @property
    def home(self) -> Server:
        return self._alone if self._world is None else self._world.shards[1].server

    def read_all(self) -> None:
        if self._world is not None:
            self._world.read_all()
        self.home.turn()

    def publish(self, data: object) -> None:
        self.home.client().publish(NEWS, data, ext={"delivery": {"persistent": False}})
        self.read_all()

    def _publish_late(self) -> None:
        keeper = self.home.keeper
        keeper.is_silent = True
        self.home.client().publish(NEWS, 2, ext={"delivery": {"persistent": True}})
        self.home.turn()
        keeper.is_silent = False
        keeper.answer_late(PersistOutcome.UNKNOWN)
        self.read_all()

    def answer(self, outcome: PersistOutcome = PersistOutcome.KEPT) -> None:
        """The store answers at last."""
        self.home.keeper.answer_late(outcome)
        self.read_all()

    def restart(self) -> None:
        if self._world is None:
            self._alone = self._alone.succeeded()
        else:
            self._world.shards[1].restart()
            self._world.read_all()

    def client(self) -> Client:
        server = self.home if self._world is None else self._world.shards[self._shard].server
        return server.client(ext={"replay": True})

    def subscribe(self, client: Client, start: Any) -> "Reader":
        asked = client.send(
            {"channel": "/meta/subscribe", "subscription": NEWS, "ext": {"replay": start}}
        )
        client.server.turn()
        self.read_all()
        client.server.turn()
        return Reader(client, asked)

    def reader(self, start: Any) -> "Reader":
        return self.subscribe(self.client(), start)


class Reader:
    """A client that has subscribed."""

    def __init__(self, client: Client, asked: Asked) -> None:
        self.client = client
        self.said: Json = asked.elements[0]["ext"]["replay"]
        self.events = asked.events

    @property
    def data(self) -> list[object]:
        return [each["data"] for each in self.events]

    def poll(self) -> Asked:
        asked = self.client.connect(advice={"timeout": 0})
        self.client.server.turn()
        self.events = asked.events
        return asked

    def cursor(self, data: object) -> int:
        """The cursor of the event with this data."""
        found = [e["ext"]["replay"]["cursor"] for e in self.events if e["data"] == data]
        return int(found[0])


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    return Place(request.param)


def cursors_of(place: Place) -> dict[object, int]:
    """The cursors of all messages that the channel keeps."""
    reader = place.reader(-2)
    return {data: reader.cursor(data) for data in reader.data}


def as_it_is(_: Place) -> None: ...


@pytest.fixture(params=[as_it_is, Place.restart], ids=["", "restarted"])
def later(request: pytest.FixtureRequest) -> Callable[[Place], None]:
    """What happens before the readers return."""
    found: Callable[[Place], None] = request.param
    return found


def test_a_reader_that_had_the_newer_one_hears_that_it_may_lack_one(
    place: Place, later: Callable[[Place], None]
) -> None:
    place.answer()
    cursors = cursors_of(place)
    later(place)
    reader = place.reader(cursors[3])
    assert reader.data == []
    assert reader.said["recovered"] is False
    [lost] = reader.said["lost"].values()
    assert lost["from"] < cursors[2] <= lost["to"]


def test_readers_from_before_it_miss_nothing(place: Place, later: Callable[[Place], None]) -> None:
    place.answer()
    cursors = cursors_of(place)
    later(place)
    for start, data in ((cursors[1], [2, 3]), (cursors[2], [3])):
        reader = place.reader(start)
        assert (reader.data, reader.said["recovered"]) == (data, True)


def test_readers_that_have_something_from_behind_it_miss_nothing(
    place: Place, later: Callable[[Place], None]
) -> None:
    place.answer()
    place.publish(4)
    cursors = cursors_of(place)
    later(place)
    assert place.reader(cursors[3]).said["recovered"] is False
    reader = place.reader(cursors[4])
    assert (reader.data, reader.said["recovered"]) == ([], True)


@pytest.mark.parametrize("place", ["alone", "at home"], indirect=True)
def test_a_reader_that_was_there_continues_where_it_was_promised(place: Place) -> None:
    reader = place.reader(-2)
    reader.poll()
    place.answer()
    assert reader.poll().data == [2]
    cursor = reader.poll().elements[-1]["ext"]["replay"]["cursor"]
    again = place.reader(cursor)
    assert (again.data, again.said["recovered"]) == ([], True)


@pytest.mark.parametrize("place", ["alone", "at home"], indirect=True)
def test_no_promise_passes_it_before_the_store_has_answered(place: Place) -> None:
    reader = place.reader(-2)
    assert reader.data == [1, 3]
    promised = reader.poll().elements[-1]["ext"]["replay"]["cursor"]
    place.answer()
    again = place.reader(promised)
    assert (again.data, again.said["recovered"]) == ([2, 3], True)


@pytest.mark.parametrize("place", ["alone", "at home"], indirect=True)
@pytest.mark.parametrize("is_kept", [True, False])
def test_who_subscribes_before_the_store_has_answered_gets_it_then(
    place: Place, is_kept: bool
) -> None:
    reader = place.reader(-2)
    assert (reader.data, "lost" in reader.said) == ([1, 3], False)
    place.answer(PersistOutcome.KEPT if is_kept else PersistOutcome.REFUSED)
    assert reader.poll().data == ([2] if is_kept else [])


@pytest.mark.parametrize("place", ["elsewhere"], indirect=True)
def test_who_reads_at_another_shard_meanwhile_hears_that_it_may_lack_it(place: Place) -> None:
    # That shard has passed its place in the log.
    reader = place.reader(-2)
    assert reader.data == [1, 3]
    assert reader.said["recovered"] is False
    place.answer()
    assert place.reader(-2).data == [1, 2, 3]


def test_a_message_that_the_store_has_refused_is_missed_by_nobody(place: Place) -> None:
    place.answer(PersistOutcome.REFUSED)
    cursors = cursors_of(place)
    assert place.reader(cursors[3]).said["recovered"] is True
