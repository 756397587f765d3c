"""Real servers of buckets for tests; the test that starts one ends it."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyarrow.fs import S3FileSystem

from bench.processes import reserved_port
from tests.store.servers import ending_with_us

BUCKET = "tables"
# SeaweedFS knows who has this key, and refuses others.
KEY = {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up-too"}
_START_LIMIT_S = 60.0
# Of SeaweedFS, beside the one for clients.
_PORTS = (
    "-s3.port.grpc",
    *(f"-{kind}.port{end}" for kind in ("master", "volume", "filer") for end in ("", ".grpc")),
)

# It looks whether there is an object, and writes it: two conditional writes at the same time could
# both be accepted.
_MOTO_IN_TURN = """
import sys, threading
from moto import server
serve, turn = server.DomainDispatcherApplication.__call__, threading.Lock()
def serve_in_turn(*request):
    with turn:
        return [b"".join(serve(*request))]
server.DomainDispatcherApplication.__call__ = serve_in_turn
server.main(sys.argv[1:])
"""


def _moto(home: str, port: str, *_: str) -> list[str]:
    if find_spec("moto") is None:
        pytest.skip("moto is missing: make setup-test")
    return [sys.executable, "-c", _MOTO_IN_TURN, "-H", "127.0.0.1", "-p", port]


def _seaweed(home: str, port: str, *others: str) -> list[str]:
    weed = shutil.which(
        "weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if weed is None:
        pytest.skip("SeaweedFS is missing: make setup-test")
    words = [weed, "server", "-dir", home, "-ip", "127.0.0.1", "-s3", "-s3.port", port]
    # Nothing of a test leaves this machine.
    words += ["-master.telemetry=false", "-ip.bind", "127.0.0.1"]
    words += ["-volume.max", "20", "-master.volumeSizeLimitMB", "64"]
    # Services that no test needs have fixed ports.
    words += ["-s3.port.iceberg", "0", "-s3.port.lance", "0"]
    for name, other in zip(_PORTS, others, strict=True):
        words += [name, other]
    return words


SERVERS = {"moto": _moto, "seaweed": _seaweed}


@contextmanager
def served(kind: str) -> Iterator[str]:
    """The URL of a server that has an empty bucket."""
    with ExitStack() as stack:
        port, *others = (str(stack.enter_context(reserved_port())) for _ in range(1 + len(_PORTS)))
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-test-"))
        said = Path(home, "said")
        words = SERVERS[kind](home, port, *others)
        with said.open("wb") as out:
            process = subprocess.Popen(
                ending_with_us(words),
                cwd=home,
                env={**os.environ, **KEY},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        try:
            _make_bucket(f"http://127.0.0.1:{port}", process, said)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
            # SeaweedFS makes sockets there, whatever it is told.
            for path in Path("/tmp").glob("seaweedfs-*-*.sock"):
                if path.stem.rpartition("-")[2] in words:
                    path.unlink()


def _make_bucket(url: str, process: subprocess.Popen[bytes], said: Path) -> None:
    key = {"access_key": KEY["AWS_ACCESS_KEY_ID"], "secret_key": KEY["AWS_SECRET_ACCESS_KEY"]}
    server = S3FileSystem(
        **key, endpoint_override=url, region="us-east-1", allow_bucket_creation=True
    )
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            server.create_dir(BUCKET)
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(said.read_text())
