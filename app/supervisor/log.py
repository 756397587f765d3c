"""What the supervisor logs, in the form of the server's log."""

import json
import os
import sys
import time
from contextlib import suppress


def log(level: str, text: str) -> None:
    """Write a line to stderr, for people on a terminal, else as JSON."""
    if sys.stderr is None:
        return
    now = time.time()
    if sys.stderr.isatty():
        line = f"{time.strftime('%H:%M:%S', time.localtime(now))} {level:<8} {text}"
    else:
        moment = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now % 1 * 1000):03}"
        about = {"time": f"{moment}+00:00", "level": level, "logger": "holdfast.supervisor"}
        line = json.dumps({**about, "message": text}, ensure_ascii=False, separators=(",", ":"))
    # Servers go on when nothing reads the log.
    with suppress(OSError):
        os.write(sys.stderr.fileno(), f"{line}\n".encode(errors="backslashreplace"))
