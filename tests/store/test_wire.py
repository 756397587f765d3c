"""What goes over the store link, byte by byte, with a store that tests direct."""

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest

from holdfast.store.links.address import Address
from holdfast.store.links.connection import StoreUnavailable, StoreUnreachable
from tests.store.caller import Caller, calling, until
from tests.store.fake_store import fake_store

REFUSED = b"-LOADING not yet\r\n"


async def test_all_calls_of_a_turn_are_sent_in_one_write() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        for word in ("a", "b", "c"):
            caller.link.call(["ECHO", word], caller.answers.append)
        await until(lambda: bool(store.heard))
        assert store.heard == [["ECHO a", "ECHO b", "ECHO c"]]


async def test_a_flush_sends_at_once_and_the_rest_of_the_turn_follows() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        caller.link.call(["ECHO", "a"], caller.answers.append)
        caller.link.flush()
        await until(lambda: bool(store.heard))
        caller.link.call(["ECHO", "b"], caller.answers.append)
        caller.link.flush()
        caller.link.call(["ECHO", "c"], caller.answers.append)
        await until(lambda: sum(map(len, store.heard)) == 3)
        assert store.heard[0] == ["ECHO a"]
        assert store.heard[1:] in ([["ECHO b", "ECHO c"]], [["ECHO b"], ["ECHO c"]])


async def test_answers_may_come_in_pieces_and_many_at_once() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        for _ in range(4):
            caller.link.call(["GET", "key"], caller.answers.append)
        await until(lambda: bool(store.heard))
        for piece in (b"$3\r", b"\nab", b"c\r\n+x\r\n+y\r\n:", b"7\r\n"):
            store.say(piece)
            await asyncio.sleep(0.005)
        assert caller.answers == [b"abc", b"x", b"y", 7]


async def test_push_messages_of_the_store_are_not_answers() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        caller.link.call(["GET", "key"], caller.answers.append)
        await until(lambda: bool(store.heard))
        store.say(b">2\r\n+invalidate\r\n*0\r\n+x\r\n")
        assert await caller.answered() == [b"x"]
        assert caller.states == []


@pytest.mark.parametrize(
    ("said", "why"), [(b"+x\r\n", "without a call"), (b"garbage\r\n", "protocol")]
)
async def test_a_store_that_sends_an_unexpected_reply_gets_a_new_connection(
    said: bytes, why: str
) -> None:
    async with fake_store() as store, calling(store.url) as caller:
        store.say(said)
        await until(lambda: len(caller.states) == 2)
        assert why in caller.states[0][1]
        assert len(store.connections) == 2


async def test_the_oldest_call_is_repeated_alone_after_a_refusal_before_any_other() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        store.answers = [b"+1\r\n", REFUSED, b"+3\r\n", REFUSED, b"+2\r\n", b"+3\r\n"]
        for word in ("1", "2", "3"):
            caller.link.call(["ECHO", word], caller.answers.append)
        assert await caller.answered() == [b"1", b"2", b"3"]
        assert store.heard == [["ECHO 1", "ECHO 2", "ECHO 3"], ["ECHO 2"], ["ECHO 2"], ["ECHO 3"]]
        assert [is_up for is_up, _ in caller.states] == [False, True]


async def test_a_store_that_greets_but_refuses_every_call_counts_as_away() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        store.answers = [REFUSED] * 4 + [b"+1\r\n"]
        caller.link.call(["ECHO", "1"], caller.answers.append)
        await until(lambda: len(store.connections) > 2)
        assert not caller.link.is_up
        await caller.answered()
        assert len(store.connections) == 5
        assert caller.states == [(False, "LOADING not yet"), (True, "")]


async def test_calls_before_the_first_connection_wait_for_it() -> None:
    async with fake_store() as store:
        caller = Caller(store.url)
        caller.link.call(["ECHO", "1"], caller.answers.append)
        await asyncio.sleep(0)
        assert (caller.link.is_up, caller.link.unanswered) == (False, 1)
        store.answers = [b"+1\r\n"]
        await caller.link.open()
        assert await caller.answered() == [b"1"]
        await caller.link.close()


async def test_the_first_call_after_an_absence_is_sent_alone_and_the_others_in_one_write() -> None:
    async with fake_store() as store, calling(store.url) as caller:
        store.connections[-1].transport.abort()
        await caller.is_away()
        for word in ("1", "2", "3"):
            caller.link.call(["ECHO", word], caller.answers.append)
            await asyncio.sleep(0)
        store.answers = [b"+%d\r\n" % number for number in (1, 2, 3)]
        assert await caller.answered() == [b"1", b"2", b"3"]
        assert store.heard == [["ECHO 1"], ["ECHO 2", "ECHO 3"]]


# Greetings


def greeting(version: str, role: str = "master") -> bytes:
    words = f"%3\r\n+server\r\n+redis\r\n+version\r\n+{version}\r\n+role\r\n+{role}\r\n"
    return words.encode()


@pytest.mark.parametrize("version", ["7.0.0", "7.2.4", "8.4.0", "10.0.1"])
async def test_versions_from_7_on_are_accepted(version: str) -> None:
    async with fake_store(greeting(version)) as store, calling(store.url) as caller:
        assert caller.link.is_up


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (greeting("6.2.14"), "redis 6.2.14 is too old"),
        (greeting(""), "too old"),
        (greeting("x"), "too old"),
        (greeting("7.4.0", role="replica"), "replica"),
        (b"+OK\r\n", "does not identify itself"),
        (b"-ERR unknown command 'HELLO'\r\n", "unknown command"),
        (b"HTTP/1.1 400 Bad Request\r\n", "protocol"),
    ],
)
async def test_a_server_that_cannot_be_used_as_the_store_is_refused_with_the_reason(
    said: bytes, why: str
) -> None:
    async with fake_store(said) as store:
        with pytest.raises(StoreUnavailable, match=why):
            await Caller(store.url).link.open()


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    home = tmp_path_factory.mktemp("tls")
    certificate, key = home / "certificate.pem", home / "key.pem"
    subprocess.run(
        [
            *["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
            *["-nodes", "-days", "2", "-subj", "/CN=store"],
            *["-addext", "subjectAltName=IP:127.0.0.1"],
            *["-keyout", str(key), "-out", str(certificate)],
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


async def test_a_store_with_an_unknown_certificate_is_refused(
    certificate: tuple[Path, Path],
) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)
    async with fake_store(tls=tls) as store:
        store.answers = [b"+1\r\n"]
        async with calling(f"{store.url}?ssl_ca_certs={certificate[0]}") as caller:
            assert await caller.link.ask("ECHO", 1) == b"1"
        with pytest.raises(StoreUnavailable, match=r"cannot be reached.*certificate") as told:
            await Caller(store.url).link.open()
        # To start it would not help.
        assert not isinstance(told.value, StoreUnreachable)


# Addresses


@pytest.mark.parametrize(
    ("url", "shown", "database", "username", "password"),
    [
        ("redis://", "localhost:6379", 0, "default", None),
        ("redis://store:7000/2", "store:7000", 2, "default", None),
        ("redis://:p%40ss@store", "store:6379", 0, "default", "p@ss"),
        ("redis://joe:pass@[::1]:7000", "::1:7000", 0, "joe", "pass"),
        ("unix:///run/my%20store.sock?db=5", "/run/my store.sock", 5, "default", None),
    ],
)
def test_an_address_has_the_parts_of_its_url(
    url: str, shown: str, database: int, username: str, password: str | None
) -> None:
    address = Address.of(url)
    assert str(address) == shown
    assert (address.database, address.username, address.password) == (database, username, password)
    assert address.tls is None


def test_tls_checks_the_host_name_unless_the_url_disables_it() -> None:
    strict = Address.of("rediss://store").tls
    lax = Address.of("rediss://store?ssl_cert_reqs=none").tls
    assert strict is not None
    assert strict.check_hostname
    assert lax is not None
    assert not lax.check_hostname


def test_tls_has_what_the_url_says_about_it() -> None:
    flags = "[VERIFY_X509_STRICT,VERIFY_CRL_CHECK_LEAF]"
    tls = Address.of(
        "rediss://store?ssl_check_hostname=no&ssl_cert_reqs=optional&ssl_min_version=772"
        f"&ssl_ciphers=ECDHE%2BAESGCM&ssl_include_verify_flags={flags}"
        "&ssl_exclude_verify_flags=VERIFY_X509_STRICT"
    ).tls
    assert tls is not None
    assert not tls.check_hostname
    assert tls.verify_mode is ssl.CERT_OPTIONAL
    assert tls.minimum_version is ssl.TLSVersion.TLSv1_3
    assert tls.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
    assert not tls.verify_flags & ssl.VERIFY_X509_STRICT
    assert "AES128-SHA256" not in {each["name"] for each in tls.get_ciphers()}


def test_tls_shows_the_certificate_that_the_url_names(certificate: tuple[Path, Path]) -> None:
    shown, key = certificate
    assert Address.of(f"rediss://store?ssl_certfile={shown}&ssl_keyfile={key}").tls is not None
    with pytest.raises(OSError):
        Address.of(f"rediss://store?ssl_certfile={shown}")


@pytest.mark.parametrize(
    "url",
    [
        "http://store",
        "unix://",
        "redis://store?db=x",
        "rediss://store?ssl_cert_reqs=perhaps",
        "rediss://store?ssl_ca_cert=misspelt",
        "rediss://store?ssl_include_verify_flags=VERIFY_NOTHING",
    ],
)
def test_an_unusable_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        Address.of(url)
