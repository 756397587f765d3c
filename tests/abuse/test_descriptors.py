"""More connections than there are descriptors."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.abuse.attacker import Person, Wire, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target
from tests.web.programs import Program, admin_url

FILES = 96
# A quarter is for the store and for files, an eighth for operators.
MAIN, ADMIN = 60, 12
WITHIN_S = 60.0


class CrowdedServer(NamedTuple):
    running: Program
    main: str
    admin: str
    data: Path

    def signed_in(self) -> dict[str, str]:
        token = (self.data / "admin-token").read_text().strip()
        return {"Host": "localhost", "Authorization": f"Bearer {token}"}

    def is_ready(self, url: str) -> bool:
        """Whether the server says that it is ready; it may also refuse the connection."""
        with suppress(ConnectionError, AssertionError), Wire(url) as wire:
            wire.send(request(b"", method="GET /readyz", headers={"Host": "localhost"}))
            return wire.answer().status == 200
        return False

    def figure(self, name: str) -> float:
        with Wire(self.main) as wire:
            wire.send(request(b"", method="GET /metrics", headers={"Host": "localhost"}))
            lines = wire.answer().body.decode().splitlines()
        (found,) = [line.rpartition(" ")[2] for line in lines if line.startswith(name)]
        return float(found)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CrowdedServer]:
    running = Program("--port", "0", "--admin", "127.0.0.1:0", home=tmp_path, files=FILES)
    try:
        main = running.place().removesuffix("/cometd")
        yield CrowdedServer(running, main, admin_url(running), tmp_path / "data")
        assert running.stop()[0] == 0
        assert "Traceback" not in running.errors()
    finally:
        running.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def crowd(stack: ExitStack, url: str, count: int) -> Sequence[Wire]:
    return [stack.enter_context(Wire(url)) for _ in range(count)]


@pytest.mark.parametrize("crowded", ["main", "admin"])
def test_silent_connections_leave_room_for_everybody_else(
    server: CrowdedServer, crowded: str
) -> None:
    with ExitStack() as stack:
        crowd(stack, getattr(server, crowded), 3 * FILES)
        for url in (server.main, server.admin):
            until(lambda url=url: server.is_ready(url))  # type: ignore[misc]
        with Person(server.main) as person:
            assert person.publish("/a", 1).status == 200
        turned_away = server.figure(
            f'holdfast_connections_turned_away_total{{listener="{crowded}"}}'
        )
        assert turned_away >= 3 * FILES - MAIN
        assert server.figure(f'holdfast_connections{{listener="{crowded}"}}') <= MAIN


def test_busy_connections_leave_room_for_operators_and_for_the_store(server: CrowdedServer) -> None:
    """Clients that sent a request stay: others find no room, except at other listeners."""
    with ExitStack() as stack:
        for wire in crowd(stack, server.main, MAIN):
            wire.send(request(b"", method="GET /healthz", headers={"Host": "localhost"}))
            assert wire.answer().status == 200
        assert not server.is_ready(server.main)
        assert server.is_ready(server.admin)
        os.kill(int((server.data / "store/valkey.pid").read_text()), signal.SIGKILL)
        until(lambda: "(process" in server.running.errors())
        until(lambda: server.is_ready(server.admin))
    until(lambda: server.is_ready(server.main))
    assert f"it has {MAIN}, and the limit of open files allows no more" in server.running.errors()


def test_requests_without_a_token_do_not_keep_operators_out(server: CrowdedServer) -> None:
    about = request(b"", server.signed_in(), method="GET /admin/api/v1/about")
    with ExitStack() as stack:
        operator = stack.enter_context(Wire(server.admin))
        operator.send(about)
        assert operator.answer().status == 200
        for _ in range(3 * ADMIN):
            wire = stack.enter_context(Wire(server.admin))
            wire.send(request(b"", {"Host": "localhost"}, method="GET /healthz"))
            assert wire.answer().status == 200
        with Wire(server.admin) as another:
            another.send(about)
            assert another.answer().status == 200
        operator.send(about)
        assert operator.answer().status == 200, "who has shown a token keeps its place"


READERS = 8
# More than the system buffers for a connection that is not read.
ONE_AFTER_ANOTHER = 400


def test_a_slow_reader_of_a_file_holds_no_descriptor_but_its_connections(
    target_with: MakeTarget,
) -> None:
    target = target_with(write_timeout=3000)
    ask = request(b"", {"Host": "localhost"}, method="GET /static/console/main.js")
    before = beside_connections(target)
    with target.bystander(), ExitStack() as stack:
        for _ in range(READERS):
            wire = stack.enter_context(Wire(target.url, receive_buffer=4096))
            wire.send(ask * ONE_AFTER_ANOTHER)
        until(lambda: beside_connections(target) > before + 2 or is_cut_off(target))
        assert is_cut_off(target)
    assert target.growth_mib() < 20


def is_cut_off(target: Target) -> bool:
    return "the client does not read" in target.log()


def beside_connections(target: Target) -> float:
    """The number of open descriptors that are no connections of clients."""
    return target.metric("process_open_fds") - target.metric("holdfast_connections")
