"""An operator updates a server by docs/how-to/upgrading.md, while a client is connected."""

import json
import os
import re
import shlex
import shutil
import subprocess
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path
from sysconfig import get_path
from typing import Any

import pytest

from tests.abuse.attacker import Person
from tests.serving import PACKAGE, ROOT, STOP_LIMIT_S, environment, kill_orphans_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PAGE = (ROOT / "docs" / "how-to" / "upgrading.md").read_text("utf-8")
LIMIT_S = 60.0
# What the page has instead of the name of a wheel.
INSTALL = re.compile(r"\S+/bin/pip install .*")
BROKEN = "\nraise RuntimeError('the test wants it')\n"


def commands_under(heading: str) -> list[str]:
    """The commands of the page under this heading, in their order."""
    [section] = re.findall(rf"^## {heading}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^```sh$(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.strip().splitlines()]


PAGE_COMMANDS = commands_under("An update")


class Machine:
    """A machine whose directories /opt and /var/lib are in a folder."""

    def __init__(self, home: Path) -> None:
        self.opt, self.data = home / "opt", home / "var" / "holdfast"
        self.opt.mkdir()
        self.data.parent.mkdir()
        self._log = home / "log"
        self.server: subprocess.Popen[str] | None = None
        self.url = ""
        known = {name: each for name, each in environment().items() if name != "PYTHONPATH"}
        del known["HOLDFAST_SUPERVISOR"]
        self._environment = {**known, "HOLDFAST_PORT": "0", "HOLDFAST_DATA": str(self.data)}
        self._home = home

    def run(self, line: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command of the page, but that packages are not installed from the network."""
        words = line.replace("/opt", str(self.opt))
        words = words.replace("/var/lib/holdfast", str(self.data))
        if words.startswith("python3 -m venv "):
            return self._install(Path(words.split()[-1]))
        if INSTALL.fullmatch(words):
            words = "true"
        path = f"{self.opt}/holdfast/bin:{os.environ['PATH']}"
        return subprocess.run(
            ["sh", "-c", words],
            cwd=self._home,
            env={**self._environment, "PATH": path, "HOLDFAST_URL": self.url},
            input=answer,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def serve(self, line: str) -> None:
        """Run the command that serves; its URL is then known."""
        words = line.replace("/opt", str(self.opt)).replace("/var/lib/holdfast", str(self.data))
        with self._log.open("w") as log:
            self.server = subprocess.Popen(
                shlex.split(words),
                cwd=self._home,
                # Commands may take longer than a client may be away.
                env={**self._environment, "HOLDFAST_MAX_INTERVAL": "600000"},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.server.stdout is not None
        said = self.server.stdout.readline()
        assert "is ready" in said, self._log.read_text()
        self.url = said.split()[3].removesuffix("/cometd")

    def package(self, version: str) -> Path:
        return self._home / version / "holdfast"

    def stop(self) -> int:
        assert self.server is not None
        self.server.terminate()
        return self.server.wait(STOP_LIMIT_S)

    def close(self) -> None:
        if self.server is not None:
            self.server.kill()
            self.server.wait()
            assert self.server.stdout is not None
            self.server.stdout.close()
        kill_orphans_in(self._home)

    def _install(self, place: Path) -> subprocess.CompletedProcess[str]:
        """Make an environment with this version, and with what the tests have beside it."""
        venv.create(place, symlinks=True)
        version = place.name.partition("-")[2]
        shutil.copytree(PACKAGE, self.package(version))
        home = self.package(version).parent
        for name in ("holdfast-bayeux", "holdfast-bayeux-client"):
            about = home / f"{name.replace('-', '_')}-{version}.dist-info"
            about.mkdir()
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            (about / "METADATA").write_text(metadata)
        [packages] = place.glob("lib/python*/site-packages")
        (packages / "paths.pth").write_text(f"{home}\n{get_path('purelib')}\n")
        script = place / "bin" / "holdfast"
        script.write_text(f"#!{place}/bin/python\nfrom holdfast.__main__ import main\nmain()\n")
        script.chmod(0o755)
        return subprocess.CompletedProcess([], 0, "", "")

    def version(self) -> str:
        """The version of the server, as the administration says."""
        token = (self.data / "admin-token").read_text().strip()
        asked = urllib.request.Request(
            f"{self.url}/admin/api/v1/about", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(asked, timeout=LIMIT_S) as response:
            found: dict[str, Any] = json.load(response)
        return str(found["version"])


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path)
    yield found
    found.close()


def test_a_day_of_updates_by_the_page(machine: Machine) -> None:
    first, second = PAGE_COMMANDS[:4], PAGE_COMMANDS[4:]
    *install, serve = first
    *install_next, doctor, link_next, restart = second
    for line in install:
        assert machine.run(line).returncode == 0
    machine.serve(serve)
    with Person(machine.url) as client:

        def goes_on_at(version: str) -> None:
            [*_, reply] = client.connect(advice={"timeout": 0}).messages()
            assert reply["successful"], reply
            assert machine.version() == version

        goes_on_at("0.4.0")
        for line in (*install_next, doctor, link_next):
            done = machine.run(line)
            assert done.returncode == 0, done.stdout + done.stderr
        # The next version does not start, so the operator waits for a better one.
        module = machine.package("0.4.1") / "cli" / "serve.py"
        source = module.read_text("utf-8")
        module.write_text(source + BROKEN, "utf-8")
        failed = machine.run(restart)
        assert failed.returncode == 1
        assert "the restart has failed, and the old server goes on" in failed.stderr
        goes_on_at("0.4.0")
        module.write_text(source, "utf-8")
        done = machine.run(restart)
        assert (done.returncode, done.stdout) == (0, "the server has been restarted\n")
        goes_on_at("0.4.1")
        # The operator goes back, and then to the new version again, for good.
        for link, version in ((install[-1], "0.4.0"), (link_next, "0.4.1")):
            assert machine.run(link).returncode == 0
            assert machine.run(restart).returncode == 0
            goes_on_at(version)
        for line in commands_under("Finish"):
            done = machine.run(line, "y\n")
            assert done.returncode == 0, done.stdout + done.stderr
        goes_on_at("0.4.1")
    assert machine.stop() == 0
