"""The right to write in a bucket: an object that says who has it, and until when.

A holder renews it. Another process takes over once the time is over, as after a kill; before it
writes, it makes sure that the earlier holder cannot any more: see `holdfast.pipeline.lake`.
"""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from secrets import token_hex
from socket import gethostname

from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.storage.objects import ObjectPath

# How long a lease lasts, and how often it is renewed.
LASTS_S = 30.0
RENEWED_S = 5.0
# The holder writes no more after this: the clocks of others may be ahead by the rest.
_TRUSTED_S = 20.0
_PAUSE_S = 0.2


class Lease:
    """A lease that this process holds, or wants to."""

    def __init__(self, place: ObjectPath) -> None:
        self._place = place
        self._who = f"{gethostname()}:{os.getpid()}"
        self._mark: str | None = None
        self._since_s = 0.0
        self._is_over = threading.Event()
        # Whether an earlier holder has let it run out.
        self.is_inherited = False
        # What another process holds.
        self.obstacle = ""

    def take(self) -> bool:
        """Take the lease, unless another process holds it."""
        self._since_s = _now_s()
        try:
            text, mark = self._place.read_marked()
        except FileNotFoundError:
            self._mark = self._place.create(self._text(LASTS_S))
            return self._mark is not None
        found = json.loads(text)
        if found["until_ms"] > time.time_ns() // 10**6:
            until = datetime.fromtimestamp(found["until_ms"] // 1000, UTC)
            self.obstacle = f"{found['who']} holds its lease until {until:%H:%M:%S} UTC or longer"
            return False
        self.is_inherited = found["until_ms"] > 0
        self._mark = self._place.replace_marked(self._text(LASTS_S), mark)
        return self._mark is not None

    def check(self) -> None:
        """Check that no other process can have taken the lease over.

        Raises:
            PipelineFailed: Another process may have.
        """
        if self._mark is None or _now_s() - self._since_s > _TRUSTED_S:
            raise PipelineFailed(
                f"{self._place}: this process stood still, or did not reach the bucket, for so "
                "long that another one may write there: run the command again; nothing is lost"
            )

    @contextmanager
    def renewing(self) -> Iterator[None]:
        """Renew the lease meanwhile, and end it afterwards."""
        thread = threading.Thread(target=self._renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()
            # It ends by itself, too.
            with suppress(PipelineFailed):
                self._replace(0.0)

    def _renew(self) -> None:
        while not self._is_over.wait(RENEWED_S):
            # The next attempt may reach the bucket.
            with suppress(PipelineFailed):
                self._replace(LASTS_S)

    def _replace(self, lasts_s: float) -> None:
        if self._mark is not None:
            since_s = _now_s()
            self._mark = self._place.replace_marked(self._text(lasts_s), self._mark)
            self._since_s = since_s

    def _text(self, lasts_s: float) -> str:
        until_ms = time.time_ns() // 10**6 + int(lasts_s * 1000) if lasts_s else 0
        return json.dumps({"who": self._who, "until_ms": until_ms, "mark": token_hex(8)})


@contextmanager
def leased(place: ObjectPath, *, waits: bool) -> Iterator[Lease]:
    """Hold a lease.

    Raises:
        BlockingIOError: Another process holds it, and this one does not wait.
    """
    lease = Lease(place)
    while not lease.take():
        if not waits and lease.obstacle:
            raise BlockingIOError(0, lease.obstacle)
        time.sleep(_PAUSE_S)
    with lease.renewing():
        yield lease


def _now_s() -> float:
    """Return a time that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
