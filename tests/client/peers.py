"""Bayeux servers by others that the Python client is tested with; the bench measures some."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.processes import reserved_port
from tests.clients.node_client import JAVA, require
from tests.serving import ROOT

HOME = ROOT / "bench" / "load" / "peers"
JETTY = HOME / "cometd-jetty" / "target"


@dataclass(frozen=True)
class Peer:
    """The command that starts a server; the port follows it."""

    name: str
    command: Sequence[str]
    path: str
    transports: Sequence[str]
    installed: Path

    def require(self) -> None:
        require(shutil.which(self.command[0]), self.command[0])
        require(self.installed.exists(), f"{self.installed.relative_to(ROOT)} (make setup-clients)")


COMETD_JAVA = Peer(
    "cometd-java",
    (*JAVA, "-cp", os.pathsep.join([str(JETTY / "classes"), str(JETTY / "lib/*")]), "CometDJetty"),
    "/cometd",
    ("websocket", "long-polling"),
    JETTY / ".installed",
)
COMETD_NODE = Peer(
    "cometd-node",
    ("node", str(HOME / "cometd_node.js")),
    "/cometd",
    ("long-polling",),
    HOME / "node_modules" / "cometd-nodejs-server",
)
FAYE = Peer(
    "faye",
    ("node", str(HOME / "faye.js")),
    "/faye",
    ("websocket", "long-polling"),
    HOME / "node_modules" / "faye",
)


class RunningPeer:
    """A running server at an address that stays the same; clients wait until it answers."""

    def __init__(self, peer: Peer) -> None:
        self._reserved = ExitStack()
        port = self._reserved.enter_context(reserved_port())
        self.url = f"http://127.0.0.1:{port}{peer.path}"
        self._command = [*peer.command, str(port)]
        self._process = subprocess.Popen(self._command)

    def restart(self) -> None:
        """Restart it; it remembers nothing."""
        self._kill()
        self._process = subprocess.Popen(self._command)

    def stop(self) -> None:
        self._kill()
        self._reserved.close()

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()
