"""The URL of a store: a server, a cluster, or Sentinels."""

import pytest

from holdfast.store.links.url import Kind, StoreUrl


def test_a_url_without_a_kind_is_that_of_a_server() -> None:
    url = StoreUrl.of("redis://joe:pass@store:7000/2")
    assert (url.kind, [*map(str, url.doors)], url.server) == (
        Kind.SERVER,
        ["store:7000"],
        url.doors[0],
    )


def test_a_url_of_a_cluster_names_some_of_its_nodes() -> None:
    url = StoreUrl.of("redis+cluster://joe:p%40ss@one:7000,two,[::1]:7002")
    assert url.kind is Kind.CLUSTER
    # A port that is not given is that of the first.
    assert [*map(str, url.doors)] == ["one:7000", "two:7000", "::1:7002"]
    assert {(door.username, door.password) for door in url.doors} == {("joe", "p@ss")}


def test_a_url_of_sentinels_names_them_and_the_service() -> None:
    url = StoreUrl.of("redis+sentinel://joe:pass@one,two:26380/shop/3")
    assert (url.kind, url.service) == (Kind.SENTINEL, "shop")
    assert [*map(str, url.doors)] == ["one:26379", "two:26380"]
    assert (url.server.username, url.server.password, url.server.database) == ("joe", "pass", 3)


def test_sentinels_have_credentials_of_their_own() -> None:
    plain = StoreUrl.of("redis+sentinel://joe:pass@one/shop").doors[0]
    own = StoreUrl.of(
        "redis+sentinel://joe:pass@one/shop?sentinel_username=eve&sentinel_password=word"
    ).doors[0]
    assert (plain.username, plain.password, plain.database) == ("default", None, 0)
    assert (own.username, own.password) == ("eve", "word")


@pytest.mark.parametrize("kind", ["cluster", "sentinel"])
def test_tls_is_for_all_servers(kind: str) -> None:
    url = StoreUrl.of(f"rediss+{kind}://one,two/shop".removesuffix("/shop" * (kind == "cluster")))
    assert url.server.tls is not None
    assert {door.tls for door in url.doors} == {url.server.tls}


def test_a_server_named_by_another_has_the_same_credentials() -> None:
    server = StoreUrl.of("rediss+cluster://joe:pass@one").server.at("two", 7001)
    assert (str(server), server.username, server.password) == ("two:7001", "joe", "pass")
    assert server.tls is not None


@pytest.mark.parametrize(
    "url",
    [
        "redis+raft://one",
        "unix+cluster:///run/store.sock",
        "http+cluster://one",
        "redis+cluster://",
        "redis+cluster://one,,two",
        "redis+cluster://one:port",
        "redis+sentinel://one",
        "redis+sentinel://one/shop/three",
    ],
)
def test_an_unusable_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        StoreUrl.of(url)
