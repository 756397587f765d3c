"""Hosts whose code is replaced while they run, as operators do: by a link that is moved."""

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp

from tests.chaos import steps
from tests.chaos.hosts import Host
from tests.chaos.test_workers import Member
from tests.serving import PACKAGE, PROGRAM, ROOT, environment

# The code of this release: as it is installed, or its sources.
OWN = PACKAGE.parent if PACKAGE.name == "holdfast" else ROOT


class UpdatedHost(Host):
    """A host that runs the code to which a link leads when its processes are started."""

    first_code = OWN

    def __init__(self, home: Path, settings: Mapping[str, Any]) -> None:
        super().__init__(home, settings)
        self._home, self._link = home, home / "code"
        self.have(self.first_code)

    def have(self, code: Path) -> None:
        """Install this code: whatever is started from now on is of it."""
        made = self._link.with_name("next")
        made.symlink_to(code)
        made.replace(self._link)

    def _spawn(self) -> "subprocess.Popen[bytes]":  # type: ignore[override] # as far as it is used
        variables = environment(f"{self._link}{os.pathsep}{ROOT}") | self._variables
        variables[steps.VARIABLE] = str(self._steps)
        # The file says that there is one.
        del variables["HOLDFAST_SUPERVISOR"]
        return subprocess.Popen(
            [*PROGRAM, "serve", "--config", str(self._config)],
            env=variables,
            cwd=self._home,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )


class Listener(Member):
    """Somebody who notes what they hear twice without a mark, and how long they heard nothing."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(url, name)
        self.unmarked: list[int] = []
        self._heard_at = 0.0
        self.silence_s = 0.0

    def begin(self) -> None:
        """Count the silences from now on."""
        self._heard_at, self.silence_s = time.monotonic(), 0.0

    async def ask(self, channel: str, **fields: Any) -> list[dict[str, Any]]:
        found = await self._asked(channel, **fields)
        rooms = [each for each in found if each["channel"] == "/room" and "data" in each]
        for each in rooms:
            told = each["ext"]["delivery"]
            if told["id"] in self.ids and not told.get("redelivered"):
                self.unmarked.append(each["data"])
        if rooms:
            now = time.monotonic()
            self.silence_s = max(self.silence_s, now - self._heard_at)
            self._heard_at = now
        return found

    async def _asked(self, channel: str, **fields: Any) -> list[dict[str, Any]]:
        return await super().ask(channel, **fields)


class OnSocket(Listener):
    """The same over a WebSocket, which is opened again when it is lost."""

    _socket: aiohttp.ClientWebSocketResponse | None = None

    async def _asked(self, channel: str, **fields: Any) -> list[dict[str, Any]]:
        if "connectionType" in fields:
            fields["connectionType"] = "websocket"
        if "supportedConnectionTypes" in fields:
            fields["supportedConnectionTypes"] = ["websocket"]
        try:
            return await self._converse({"channel": channel, "clientId": self.client_id, **fields})
        except BaseException:
            # A late answer must not be taken for that of another message.
            await self.hang_up()
            raise

    async def _converse(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        if self._socket is None:
            self._socket = await self.http.ws_connect("/cometd")
        await self._socket.send_json([message])
        found: list[dict[str, Any]] = []
        while not any(_answers(each, message) for each in found):
            frame = await self._socket.receive()
            if frame.type is not aiohttp.WSMsgType.TEXT:
                raise aiohttp.ClientError(f"the socket ends: {frame.type.name}")
            found += frame.json()
        return found

    async def hang_up(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()


def _answers(each: dict[str, Any], message: dict[str, Any]) -> bool:
    return each["channel"] == message["channel"] and "successful" in each
