"""What leads clients to the server that serves: nginx, HAProxy, or a proxy of the tests.

The settings of nginx and HAProxy are those of the folder `deploy`, with other ports.
"""

import asyncio
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bench.processes import reserved_port
from tests.chaos.machines import HasServer, Pair
from tests.chaos.proxy import Proxy
from tests.forking import ROOT
from tests.store.servers import ending_with_us
from tests.web.requests import HANDSHAKE

# Where they are, besides the program that make takes out of a package.
_PROGRAMS = (str(ROOT / ".venv/bin"), None, "/usr/sbin")
DOORS = ("haproxy", "nginx")
_LOOK_S = 0.5
_START_LIMIT_S = 60.0


class Door:
    """Where clients connect."""

    url = ""

    def leave(self, machine: HasServer) -> None:
        """This machine cannot be reached."""

    def admit(self, machine: HasServer) -> None:
        """It can be reached again."""


class Follower(Door):
    """Asks both servers twice a second, as a health check does."""

    def __init__(self, machines: Pair[Any], proxy: Proxy) -> None:
        self._machines, self._proxy = machines, proxy
        self._away: list[HasServer] = []
        self.url = proxy.url

    def leave(self, machine: HasServer) -> None:
        self._away.append(machine)
        # Those that are connected have lost it, too, at once.
        self._lead_to(self._machines.other(machine))

    def admit(self, machine: HasServer) -> None:
        self._away.remove(machine)

    async def run(self) -> None:
        # One that does not answer does not delay what the other one says.
        await asyncio.gather(*(self._watch(each) for each in self._machines.all[:2]))

    async def _watch(self, machine: HasServer) -> None:
        while True:
            is_ready = (await machine.twin.readiness())[0] == 200
            if is_ready and machine not in self._away:
                self._lead_to(machine)
            await asyncio.sleep(_LOOK_S)

    def _lead_to(self, machine: HasServer) -> None:
        if self._proxy.upstream != machine.twin.address:
            self._proxy.upstream = machine.twin.address
            self._proxy.reset()


@asynccontextmanager
async def door_to(kind: str, home: Path, machines: Pair[Any]) -> AsyncIterator[Door]:
    if kind != "follower":
        first, second = (each.address for each in machines.twins)
        places = {"one.example.org:8080": str(first), "two.example.org:8080": str(second)}
        async with program(kind, home, settings_of(kind, "two-machines", places)) as found:
            yield found
        return
    async with Proxy(machines.twins[0].address) as proxy:
        found = Follower(machines, proxy)
        following = asyncio.create_task(found.run())
        try:
            yield found
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


@asynccontextmanager
async def program(kind: str, home: Path, settings: str) -> AsyncIterator[Door]:
    """Run nginx, HAProxy or Caddy with the settings that the documentation shows."""
    found = next(filter(None, [shutil.which(kind, path=each) for each in _PROGRAMS]), None)
    if found is None:
        pytest.skip(f"{kind} is not installed: apt-get install {kind}")
    with reserved_port() as port:
        door = Door()
        door.url = f"http://127.0.0.1:{port}"
        config = home / f"{kind}.conf"
        config.write_text(_at_home(kind, port, settings, home))
        command = {
            "haproxy": [found, "-db", "-f", str(config)],
            "nginx": [found, "-p", str(home), "-c", str(config), "-e", str(home / "nginx.log")],
            "caddy": [found, "run", "--adapter", "caddyfile", "--config", str(config)],
        }[kind]
        log = home / f"{kind}.log"
        process = _started(command, log)
        try:
            await _answers(door.url, log)
            yield door
        finally:
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.wait, _START_LIMIT_S)


def _started(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(ending_with_us(command), stdout=file, stderr=file)


def settings_of(kind: str, folder: str, places: Mapping[str, str]) -> str:
    """The settings in a folder of `deploy`, with other names and ports for those in them."""
    name = {"haproxy": "haproxy.cfg", "nginx": "nginx.conf", "caddy": "Caddyfile"}[kind]
    text = (ROOT / "deploy" / folder / name).read_text()
    for here, there in places.items():
        text = text.replace(here, there)
    assert "example" not in text
    return text


def _at_home(kind: str, port: int, text: str, home: Path) -> str:
    """The settings for a proxy that listens at this port, and keeps its files here."""
    if kind == "haproxy":
        return text.replace("bind :80", f"bind 127.0.0.1:{port}")
    if kind == "caddy":
        text = text.replace("\n:80 {", f"\nhttp://127.0.0.1:{port} {{")
        return f"{{\n\tadmin off\n\tstorage file_system {home}\n}}\n{text}"
    text = text.replace("listen 80;", f"listen 127.0.0.1:{port};")
    paths = "".join(
        f"    {each}_temp_path {home}/nginx-{each};\n"
        for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"daemon off;\nmaster_process off;\npid {home}/nginx.pid;\nevents {{}}\n"
        f"http {{\n    access_log off;\n{paths}{text}\n}}\n"
    )


async def _answers(url: str, log: Path) -> None:
    loop = asyncio.get_running_loop()
    ends = loop.time() + _START_LIMIT_S
    async with aiohttp.ClientSession() as http:
        while True:
            try:
                async with http.post(f"{url}/cometd", json=HANDSHAKE) as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            assert loop.time() < ends, f"nobody answers: see {log}"
            await asyncio.sleep(0.1)
