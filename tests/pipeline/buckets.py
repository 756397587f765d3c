"""Real servers of buckets for tests; the test that starts one ends it."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyarrow.fs import S3FileSystem

from tests.store.servers import _end_with_us

BUCKET = "tables"
# SeaweedFS knows who has this key, and refuses others.
KEY = {"AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up-too"}
_START_LIMIT_S = 60.0
_KINDS = ("master", "volume", "filer")


def free_port() -> int:
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))
        return int(end.getsockname()[1])


def _moto(port: int, home: str) -> list[str]:
    if find_spec("moto") is None:
        pytest.skip("moto is missing: make setup-test")
    return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]


def _seaweed(port: int, home: str) -> list[str]:
    weed = shutil.which(
        "weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    if weed is None:
        pytest.skip("SeaweedFS is missing: make setup-test")
    words = [weed, "server", "-dir", home, "-ip", "127.0.0.1", "-s3", "-s3.port", str(port)]
    # Nothing of a test leaves this machine.
    words += ["-master.telemetry=false", "-ip.bind", "127.0.0.1", "-s3.port.grpc", str(free_port())]
    words += ["-volume.max", "20", "-master.volumeSizeLimitMB", "64"]
    # Services that no test needs have fixed ports.
    words += ["-s3.port.iceberg", "0", "-s3.port.lance", "0"]
    for kind in _KINDS:
        words += [f"-{kind}.port", str(free_port()), f"-{kind}.port.grpc", str(free_port())]
    return words


SERVERS = {"moto": _moto, "seaweed": _seaweed}


@contextmanager
def served(kind: str) -> Iterator[str]:
    """The URL of a server that has an empty bucket."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as home:
        said = Path(home, "said")
        words = SERVERS[kind](port, home)
        with said.open("wb") as out:
            process = subprocess.Popen(
                words,
                cwd=home,
                env={**os.environ, **KEY},
                stdout=out,
                stderr=subprocess.STDOUT,
                preexec_fn=_end_with_us,
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
