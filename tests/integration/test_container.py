"""The server with the flags and variables of image and compose file, as operators find it.

Ports, the data directory and the store's address are of this machine; all else is what is shipped.
"""

import http.client
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.processes import reserved_port
from tests.container import command_of_the_image, flag, read_compose, variables_of_the_image
from tests.integration.talker import Talker
from tests.serving import PROGRAM, ROOT, environment
from tests.store.servers import ValkeyServer
from tests.web.programs import Program, program

LIMIT_S = 60


class Container(NamedTuple):
    running: Program
    public: str
    admin: str
    data: Path
    variables: dict[str, str]

    def get(self, place: str, path: str, **headers: str) -> tuple[int, str]:
        with closing(http.client.HTTPConnection(place, timeout=LIMIT_S)) as connection:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def run(self, *words: str) -> str:
        """A command beside the server: `docker compose exec holdfast holdfast …`."""
        done = subprocess.run(
            [*PROGRAM, *words],
            cwd=self.data,
            env={**environment(), **self.variables},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def token(self, name: str) -> str:
        return (self.data / name).read_text().strip()


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    home = tmp_path_factory.mktemp("container")
    with ExitStack() as stack:
        # The server listens at all addresses, and clients of other tests have other ones.
        ports = [stack.enter_context(reserved_port("0.0.0.0")) for _ in range(3)]
        yield stack.enter_context(started_in(home, *map(str, ports)))


@contextmanager
def started_in(home: Path, store: str, public: str, admin: str) -> Iterator[Container]:
    """The server, with its store, and ports of this machine for theirs."""
    (data := home / "volume").mkdir()
    here = {
        flag("data"): str(data),
        "valkey:6379": f"127.0.0.1:{store}",
        flag("port"): public,
        flag("admin").rpartition(":")[2]: admin,
    }
    there = re.compile("|".join(map(re.escape, here)))

    def moved(text: str) -> str:
        return there.sub(lambda found: here[found[0]], text)

    given = variables_of_the_image() | read_compose()["services"]["holdfast"]["environment"]
    variables = {name: moved(given[name]) for name in given if name.startswith("HOLDFAST_")}
    words = [moved(word) for word in command_of_the_image()[2:]]
    with ValkeyServer(port=store), program(*words, home=home, variables=variables) as running:
        running.place()
        yield Container(running, f"127.0.0.1:{public}", f"127.0.0.1:{admin}", data, variables)


def test_the_public_port_has_neither_console_nor_administration(container: Container) -> None:
    status, welcome = container.get(container.public, "/")
    assert status == 200
    assert 'href="console/"' not in welcome
    for path in ("/console/", "/admin/api/v1/about"):
        assert container.get(container.public, path)[0] == 404
    assert container.get(container.public, "/readyz") == (200, "ready\n")


def test_the_console_is_on_the_port_of_the_administration(container: Container) -> None:
    assert container.get(container.admin, "/")[0] == 302
    status, console = container.get(container.admin, "/console/")
    assert status == 200
    for file in re.findall(r'(?:src|href)="\.\.(/static/[^"]+)"', console):
        assert container.get(container.admin, file)[0] == 200, file
    for path in ("/cometd", "/chat/", "/metrics"):
        assert container.get(container.admin, path)[0] == 404


def test_only_its_two_tokens_open_the_administration(container: Container) -> None:
    path = "/admin/api/v1/about"
    assert container.get(container.admin, path)[0] == 401
    for name, role in (("admin-token", "operator"), ("reader-token", "reader")):
        bearer = f"Bearer {container.token(name)}"
        status, about = container.get(container.admin, path, Authorization=bearer)
        assert (status, json.loads(about)["role"]) == (200, role)


@pytest.mark.parametrize(("origin", "status"), [("own", 204), ("http://evil.example", 403)])
def test_only_pages_of_the_published_port_may_change_something(
    container: Container, origin: str, status: int
) -> None:
    """Whatever number the port has outside, a browser sends the same in Origin and Host."""
    outside = "127.0.0.1:9443"
    Talker(f"http://{container.public}").handshake(ext={"delivery": {"session": "ann/1"}})
    headers = {
        "Authorization": f"Bearer {container.token('admin-token')}",
        "Origin": f"http://{outside}" if origin == "own" else origin,
        "Host": outside,
    }
    with closing(http.client.HTTPConnection(container.admin, timeout=LIMIT_S)) as connection:
        connection.request("DELETE", "/admin/api/v1/sessions/ann/1", headers=headers)
        assert connection.getresponse().status == status


def test_commands_in_the_container_find_the_server_without_options(container: Container) -> None:
    Talker(f"http://{container.public}").handshake(ext={"delivery": {"session": "joe/1"}})
    assert "joe/1" in container.run("session", "list", "--json")
    container.run("dispatcher", "hold", "joe/1", "--reason", "a look")
    assert "a look" in container.run("dispatcher", "show")
    assert container.run("dead", "list", "--json") == ""


def test_no_log_of_the_container_has_a_token(container: Container) -> None:
    assert container.running.process.stdout is not None
    about = container.running.process.stdout.readline().decode()
    assert about == f"the operators' token is new; show it with: cat {container.data}/admin-token\n"
    for name in ("admin-token", "reader-token"):
        assert container.token(name) not in about + container.running.errors()


def test_the_page_of_containers_has_the_address_and_commands_of_the_container() -> None:
    page = (ROOT / "docs/how-to/containers.md").read_text()
    port = flag("admin").rpartition(":")[2]
    assert f"http://127.0.0.1:{port}/console/" in page
    assert f"docker compose exec holdfast cat {flag('data')}/admin-token" in page
    assert "docker compose exec holdfast holdfast session list" in page
