"""A server that is stopped in order leaves all its sessions to the one that starts next."""

import socket
from pathlib import Path

import pytest

from tests.integration.successors import Successors, following
from tests.web.test_succession import PlainClient


def go_on(client: PlainClient, servers: Successors) -> None:
    client.go_to(servers.last.url)


@pytest.mark.parametrize("has_name", [False, True])
def test_sessions_go_on_after_a_stop_and_a_start(has_name: bool, tmp_path: Path) -> None:
    with following(tmp_path) as servers:
        client = PlainClient(servers.last.url, name="joe/1" if has_name else "")
        client.publish(1)
        servers.restart()
        go_on(client, servers)
        client.publish(2)
        assert client.connect() == [1, 2]
        servers.restart()
        go_on(client, servers)
        assert client.connect() == []


def test_what_was_given_does_not_rise_again_after_a_kill(tmp_path: Path) -> None:
    with following(tmp_path) as servers:
        client = PlainClient(servers.last.url)
        client.publish(1)
        servers.restart()
        servers.kill()
        go_on(client, servers)
        with pytest.raises(AssertionError, match="402"):
            client.connect()


def test_a_start_that_fails_leaves_the_sessions_to_the_next_one(tmp_path: Path) -> None:
    with following(tmp_path) as servers, socket.create_server(("127.0.0.1", 0)) as taken:
        client = PlainClient(servers.last.url)
        client.publish(1)
        servers.restart(port=taken.getsockname()[1])
        go_on(client, servers)
        assert client.connect() == [1]
