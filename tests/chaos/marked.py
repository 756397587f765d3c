"""`python -m tests.chaos.marked POINT serve ...`: a server that freezes once at a marked point.

With `+broken` behind the point, it speaks whether or not it has a lease.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from holdfast.cli.main import main as serve
from holdfast.store.lease import Lease
from holdfast.web.request_scheduler import RequestScheduler
from holdfast.web.write_coalescer import WriteCoalescer

MARK = b"freeze now"


class Mark:
    """What the server was doing when it saw the mark."""

    has_frozen = False
    # Whether a write with the mark waits for the end of the turn.
    is_written = False


def freeze() -> None:
    """Stop this process, once, until the test lets it continue."""
    if not Mark.has_frozen:
        Mark.has_frozen = True
        os.kill(os.getpid(), signal.SIGSTOP)


def before_a_request() -> None:
    """Freeze when the request was read."""
    _around(RequestScheduler, "receive", before=lambda self, body, exchange: MARK in body)


def after_a_request() -> None:
    """Freeze when the request was handled and its message waits for the store."""
    _around(RequestScheduler, "receive", after=lambda self, body, exchange: MARK in body)


def before_the_check() -> None:
    """Freeze when the message is about to leave, before the lease is looked at."""
    _note_writes()
    _around(WriteCoalescer, "send", before=lambda self: Mark.is_written)


def after_the_check() -> None:
    """Freeze between the look at the lease and the write."""
    _note_writes()
    _around(Lease, "may_speak", after=lambda self: Mark.is_written)


POINTS = (before_a_request, after_a_request, before_the_check, after_the_check)


def _note_writes() -> None:
    write = WriteCoalescer.write

    def noting(self: WriteCoalescer, transport: Any, data: bytes) -> None:
        Mark.is_written = Mark.is_written or MARK in data
        write(self, transport, data)

    WriteCoalescer.write = noting  # type: ignore[method-assign]


def _around(
    owner: type,
    name: str,
    *,
    before: Callable[..., bool] = lambda *_: False,
    after: Callable[..., bool] = lambda *_: False,
) -> None:
    whole = getattr(owner, name)

    def marked(self: Any, *args: Any) -> Any:
        if before(self, *args):
            freeze()
        found = whole(self, *args)
        if after(self, *args):
            freeze()
        return found

    setattr(owner, name, marked)


def speak_always() -> None:
    """Break the lease."""

    def may_speak(self: Lease) -> bool:
        self.is_silent = False
        return True

    Lease.may_speak = may_speak  # type: ignore[method-assign]


def main() -> None:
    """Change the server before anything of it was made."""
    point, _, broken = sys.argv.pop(1).partition("+")
    if broken:
        speak_always()
    {each.__name__: each for each in POINTS}[point]()
    serve()


if __name__ == "__main__":
    main()
