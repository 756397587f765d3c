"""`holdfast serve` behaves as the pages chat.md, proxies.md and operations.md say."""

import re
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from docs import generate
from tests.integration.talker import Talker
from tests.serving import PROGRAM, ROOT, Server, Servers, environment, kill_orphans_in

LIMIT_S = 60


Process = subprocess.Popen[str]


@contextmanager
def started(*flags: str | Path) -> Iterator[Process]:
    """The running command, which is killed at the end."""
    process = subprocess.Popen(
        [*PROGRAM, "serve", *flags],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            for flag in flags:
                if isinstance(flag, Path):
                    kill_orphans_in(flag)


def first_line(process: Process) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def complaint(*flags: str | Path) -> str:
    """What the command says when it refuses to start."""
    with started("--port", "0", *flags) as process:
        said, complained = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, said) == (2, "")
    return complained


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.with_settings({})


def test_a_start_prints_one_line_and_the_first_start_two_and_a_signal_ends_it_with_code_0(
    tmp_path: Path,
) -> None:
    url = r"http://127\.0\.0\.1:\d+"
    for tells in ("the operators' token is new; show it with: cat ", ""):
        with started("--port", "0", "--data", tmp_path / "data") as process:
            line = first_line(process)
            process.terminate()
            assert process.stdout is not None
            assert process.stderr is not None
            # This includes what came together with the first line.
            rest, complained = process.stdout.read(), process.stderr.read()
            code = process.wait(LIMIT_S)
        assert re.fullmatch(rf"holdfast is ready: {url}/cometd - to try it out open {url}/\n", line)
        assert rest.startswith(tells)
        assert rest.count("\n") == bool(tells)
        assert (code, complained) == (0, "")


def test_the_command_publishes_over_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "bayeux.sock"
    with started("--unix", path, "--data", tmp_path / "data") as process:
        assert first_line(process) == f"holdfast is ready: unix:{path}\n"
        words = (*PROGRAM, "publish", "/sockets", "1", "--url", f"unix:{path}")
        published = subprocess.run(words, cwd=ROOT, env=environment(), timeout=LIMIT_S)
        assert published.returncode == 0


def test_a_server_on_a_public_address_does_not_start_without_the_setting_open(
    tmp_path: Path,
) -> None:
    assert "set open to admit everybody" in complaint("--host", "0.0.0.0", "--data", tmp_path)


def test_a_server_whose_redis_cannot_be_reached_does_not_start(tmp_path: Path) -> None:
    with socket.socket() as taken:
        # Bound but not listening: nothing answers here, and no other process can bind the port.
        taken.bind(("127.0.0.1", 0))
        url = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        said = complaint("--redis", url, "--data", tmp_path)
        assert "cannot be reached" in said
        assert "start it, correct redis, or leave redis out" in said


def test_a_server_with_a_missing_extension_does_not_start_and_names_it(tmp_path: Path) -> None:
    said = complaint("--extension", "docs.examples.club:nothing", "--data", tmp_path)
    assert "docs.examples.club:nothing" in said


@pytest.mark.parametrize(("path", "answer"), [("/healthz", b"ok\n"), ("/readyz", b"ready\n")])
def test_the_probes_of_a_running_server_answer(path: str, answer: bytes, server: Server) -> None:
    assert get(server, path) == answer


@pytest.fixture
def fresh_server() -> Iterator[Server]:
    server = Server({"max_queue": 2})
    yield server
    server.stop()


def test_the_counters_balance_and_the_metrics_are_those_of_the_page(fresh_server: Server) -> None:
    server = fresh_server
    talker = Talker(server.url)
    talker.handshake()
    talker.send("/meta/subscribe", subscription="/books")
    other = Talker(server.url)
    other.handshake()
    other.send_all([{"channel": "/books", "data": n} for n in range(3)])

    samples = re.findall(
        r"^(holdfast_\w+)(\{[^}]*\})? (\S+)$", get(server, "/metrics").decode(), re.M
    )
    metrics = {name + labels: float(value) for name, labels, value in samples}
    settled = sum(v for name, v in metrics.items() if name.startswith("holdfast_entries_settled"))
    assert metrics["holdfast_entries_accepted_total"] == 3
    assert metrics["holdfast_entries_waiting"] == 2
    assert settled + metrics["holdfast_entries_in_flight"] == 1
    overflow = 'holdfast_entries_discarded_total{reason="resource.overflow.queue.entries"}'
    assert metrics[overflow] == 1
    on_the_page = set(re.findall(r"holdfast_\w+", generate.metrics()))
    # Those of several workers, of webhooks and of a backend, which this server lacks.
    others = re.compile(
        "holdfast_(log|shard|linked|messages_early|requests_forwarded|connections_given|webhook|backend)_"
    )
    lacking = {name for name in on_the_page if others.match(name)}
    # The page names a histogram, which has several samples.
    named = {re.sub(r"(_seconds)_(?:bucket|count|sum)$", r"\1", name) for name, _, _ in samples}
    assert named == on_the_page - lacking


def get(server: Server, path: str) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(server.url + path, timeout=LIMIT_S) as response:
        body: bytes = response.read()
    return body
