"""A store link whose keys move to another server, call by call, with stores that tests direct."""

from holdfast.store.links.reply_errors import StoreRefused
from tests.store.caller import Caller, calling, until
from tests.store.fake_store import GREETING, FakeServer, fake_store


def moved_to(store: FakeServer, code: str = "MOVED") -> bytes:
    return f"-{code} 1 {store.url.removeprefix('redis://')}\r\n".encode()


def echo(caller: Caller, *words: str) -> None:
    for word in words:
        caller.link.call(["ECHO", word], caller.answers.append)


async def test_calls_follow_keys_that_have_moved_and_the_store_stays_available() -> None:
    async with fake_store() as old, fake_store() as new, calling(old.url) as caller:
        old.answers = [b"+a\r\n", moved_to(new), moved_to(new)]
        new.answers = [b"+b\r\n", b"+c\r\n"]
        echo(caller, "a", "b", "c")
        assert await caller.answered() == [b"a", b"b", b"c"]
        # Alone, because its answer shows whether the others may follow.
        assert new.heard == [["ECHO b"], ["ECHO c"]]
        assert caller.states == []
        assert caller.link.times.answers.read()[-1] == 3


async def test_nothing_overtakes_a_call_whose_keys_are_on_the_move() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        # The second call was carried out too early; what it did there is not its answer.
        store.answers = [b"-TRYAGAIN later\r\n", b"+too early\r\n", b"-TRYAGAIN later\r\n"]
        echo(caller, "a", "b")
        await until(lambda: len(store.heard) == 2)
        store.answers = [b"+a\r\n", b"+b\r\n"]
        assert await caller.answered() == [b"a", b"b"]
        assert store.heard == [["ECHO a", "ECHO b"], ["ECHO a"], ["ECHO a"], ["ECHO b"]]
        assert caller.states == []
        assert caller.link.times.answers.read()[-1] == 2


async def test_calls_of_a_later_turn_wait_for_a_call_whose_keys_are_on_the_move() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        store.answers = [b"-TRYAGAIN later\r\n"]
        echo(caller, "a")
        await until(lambda: not caller.link._is_flowing)
        echo(caller, "b", "c")
        assert caller.link.has_room
        await until(lambda: len(store.heard) == 2)
        assert caller.link.silence_s
        store.say(b"+a\r\n")
        await until(lambda: len(store.heard) == 3)
        store.say(b"+b\r\n+c\r\n")
        assert await caller.answered() == [b"a", b"b", b"c"]
        assert store.heard == [["ECHO a"], ["ECHO a"], ["ECHO b", "ECHO c"]]


async def test_a_call_whose_keys_alone_have_moved_is_asked_for_there() -> None:
    async with fake_store() as old, fake_store() as new, calling(old.url) as caller:
        early, ask = b"+too early\r\n", moved_to(new, "ASK")
        old.answers = [ask, early, early, ask, early, b"+c\r\n"]
        new.answers = [b"+OK\r\n", b"+a\r\n", b"+OK\r\n", b"+b\r\n"]
        echo(caller, "a", "b", "c")
        assert await caller.answered() == [b"a", b"b", b"c"]
        assert new.heard == [["ASKING", "ECHO a"], ["ASKING", "ECHO b"]]
        assert len(new.connections) == 1
        assert caller.states == []


async def test_a_call_that_some_servers_ask_to_repeat_begins_anew_at_the_old_one() -> None:
    async with fake_store() as old, fake_store() as new, calling(old.url) as caller:
        old.answers = [moved_to(new, "ASK"), moved_to(new)]
        new.answers = [b"+OK\r\n", b"-TRYAGAIN some keys are there\r\n", b"+a\r\n"]
        echo(caller, "a")
        assert await caller.answered() == [b"a"]
        assert old.heard == [["ECHO a"]] * 2
        assert new.heard == [["ASKING", "ECHO a"], ["ECHO a"]]


async def test_only_calls_that_may_have_been_carried_out_are_never_refused() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        full = b"-OOM no memory\r\n"
        store.answers = [b"-TRYAGAIN later\r\n", b"-TRYAGAIN later\r\n", full, full]
        caller.note(2, may_be_refused=True)
        await until(lambda: bool(caller.states))
        assert [type(answer) for answer in caller.answers] == [StoreRefused]
        store.answers = [b"+1\r\n"]
        await until(lambda: len(caller.answers) == 2)
        assert caller.answers[1] == b"1"


async def test_a_store_whose_keys_move_for_too_long_counts_as_away() -> None:
    async with fake_store() as store, calling(store.url, timeout_s=0.5) as caller:
        store.answers = [b"-TRYAGAIN later\r\n"] * 20
        echo(caller, "a")
        await until(lambda: bool(caller.states))
        assert caller.states == [(False, "TRYAGAIN later")]
        store.answers = [b"+a\r\n"]
        assert await caller.answered() == [b"a"]
        assert [is_up for is_up, _ in caller.states] == [False, True]


async def test_a_store_that_names_a_server_where_nobody_is_is_asked_again() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        store.answers = [b"-MOVED 1 127.0.0.1:1\r\n", b"+a\r\n"]
        echo(caller, "a")
        assert await caller.answered() == [b"a"]
        assert len(store.connections) == 2


async def test_a_store_whose_keys_are_where_nobody_is_counts_as_away() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        store.answers = [b"-ASK 1 127.0.0.1:1\r\n"]
        echo(caller, "a")
        await until(lambda: bool(caller.states))
        assert caller.states[0][1].startswith("ASK 1 127.0.0.1:1; there: cannot be reached")
        store.answers = [b"+a\r\n"]
        assert await caller.answered() == [b"a"]


async def test_a_connection_that_is_lost_on_the_way_is_restored() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        store.answers = [b"-TRYAGAIN later\r\n"] * 2
        echo(caller, "a", "b")
        await until(lambda: len(store.heard) == 1 and not store.answers)
        store.connections[-1].transport.abort()
        store.answers = [b"+a\r\n", b"+b\r\n"]
        assert await caller.answered() == [b"a", b"b"]
        assert len(store.connections) == 2


async def test_a_link_that_is_closed_on_the_way_leaves_no_connection_open() -> None:
    in_cluster = GREETING.replace(b"%3", b"%4") + b"+mode\r\n+cluster\r\n"
    async with fake_store() as old, fake_store(in_cluster) as new, calling(old.url) as caller:
        old.answers = [moved_to(new)]
        echo(caller, "a")
        # It is asked for the nodes of its cluster, and does not answer.
        await until(lambda: bool(new.heard))
        await caller.link.close()
        await until(new.connections[0].transport.is_closing)


async def test_a_link_that_is_closed_on_the_way_fails_its_calls() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        store.answers = [b"-TRYAGAIN later\r\n"]
        echo(caller, "a")
        await until(lambda: len(store.heard) == 1 and not store.answers)
        await caller.link.close()
        assert len(caller.answers) == 1
