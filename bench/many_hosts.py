"""Runs several hosts with the shards of one deployment on one Valkey, as a server to measure.

All are on this machine, each at a loopback address of its own: the first at 127.0.0.1.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from bench.processes import reserved_port
from tests.store.servers import ValkeyServer, ending_with_us
from tests.web.certificates import Authority

_STOP = (signal.SIGTERM, signal.SIGINT)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.many_hosts", description=__doc__)
    add = parser.add_argument
    add("--hosts", type=int, default=3)
    add("--shards", type=int, default=3)
    add("--port", type=int, required=True, help="for clients, at the address of each host")
    add("--data", type=Path, required=True)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    names = [f"127.0.0.{number + 1}" for number in range(options.hosts)]
    authority = Authority(options.data)
    with ExitStack() as stack:
        store_port = stack.enter_context(reserved_port())
        stack.enter_context(ValkeyServer(port=str(store_port), appendonly="yes"))
        links = stack.enter_context(reserved_port("0.0.0.0"))  # noqa: S104
        for name in names:
            cert, key = authority.issue(name, at=name)
            directory = options.data / name
            directory.mkdir()
            settings = {
                "HOSTS": json.dumps([f"{each}:{links}" for each in names]),
                "OWN_HOST": name,
                "SHARDS": options.shards,
                "REDIS": f"redis://127.0.0.1:{store_port}",
                "HOST": name,
                "PORT": options.port,
                "DATA": directory,
                "CHAT": "false",
                "LINK_CERT": cert,
                "LINK_KEY": key,
                "LINK_CA": authority.file,
            }
            environment = {f"HOLDFAST_{each}": str(value) for each, value in settings.items()}
            words = [sys.executable, "-P", "-m", "holdfast", "serve"]
            host = subprocess.Popen(
                ending_with_us(words), env=os.environ | environment, preexec_fn=_take_signals
            )
            stack.callback(host.wait)
            stack.callback(host.terminate)
        signal.sigwait(_STOP)


def _take_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)


if __name__ == "__main__":
    main()
