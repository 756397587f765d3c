"""The image that the Dockerfile describes: its lines run here, and what comes out serves."""

import json
import shlex
import time
from collections.abc import Iterator

import pytest

from tests.integration.image import Container, built

# The first build on a machine installs a Debian, and compiles the core.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
START_LIMIT_S = 120


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    home = tmp_path_factory.mktemp("image")
    with built(home) as stage:
        container = Container(stage, home)
        try:
            yield container
        finally:
            container.process.kill()
            container.process.wait()


def test_the_server_of_the_image_starts_and_is_healthy(container: Container) -> None:
    """By the health check of the image, which asks `/readyz`."""
    _, _, check = container.stage.words["HEALTHCHECK"].partition("CMD ")
    words = json.loads(check)
    limit = time.monotonic() + START_LIMIT_S
    while (done := container.run(*words)).returncode:
        assert container.process.poll() is None, container.log.read_text()
        assert time.monotonic() < limit, done.stderr + container.log.read_text()
        time.sleep(0.5)


def test_its_core_is_compiled_and_its_pages_are_there(container: Container) -> None:
    ask = "from holdfast.distribution import core; print(core())"
    assert container.run("python", "-c", ask).stdout == "compiled\n"
    for path, what in (("static/cometd/cometd.js", b"export"), ("docs/", b"dead letter")):
        page = f"http://127.0.0.1:8080/{path}"
        ask = f"import urllib.request as r; print({what!r} in r.urlopen({page!r}).read())"
        assert container.run("python", "-c", ask).stdout == "True\n"


def test_commands_run_beside_the_server_without_options(container: Container) -> None:
    """`docker exec CONTAINER holdfast session list`."""
    done = container.run("holdfast", "session", "list", "--json")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("line", ["pip --version", "gcc --version", "touch /opt/holdfast/new"])
def test_the_image_has_nothing_that_builds_and_cannot_be_changed(
    container: Container, line: str
) -> None:
    assert container.run(*shlex.split(line)).returncode != 0


def test_it_runs_as_the_user_of_the_image_who_owns_the_volume(container: Container) -> None:
    assert container.run("id", "--user").stdout.strip() == container.stage.words["USER"]
    token = container.volume / "admin-token"
    assert str(token.stat().st_uid) == container.stage.words["USER"]
    assert token.stat().st_mode & 0o077 == 0


def test_it_stops_in_order(container: Container) -> None:
    assert container.stop() == 0, container.log.read_text()
