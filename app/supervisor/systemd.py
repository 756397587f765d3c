"""What systemd and the supervisor tell each other, as sd_notify(3) and sd_listen_fds(3) say."""

import os
import socket
import time
from collections.abc import Sequence

from holdfast.supervisor.control import CONTROL

_FIRST_DESCRIPTOR = 3
# They are for the supervisor alone.
OF_SYSTEMD = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Systemd:
    """Where `NOTIFY_SOCKET` is; otherwise nothing happens."""

    def __init__(self) -> None:
        self._address = os.environ.get("NOTIFY_SOCKET", "").replace("@", "\0", 1)
        is_ours = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        limit_us = int(os.environ.get("WATCHDOG_USEC", "0")) if is_ours else 0
        # Twice within the limit, as systemd advises.
        self._feeding_s = limit_us / 2e6
        self._fed = 0.0

    def tell(self, *lines: str, descriptors: Sequence[int] = ()) -> None:
        """Send a notification; systemd may not be there any more."""
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            try:
                sender.connect(self._address)
                # Reasons for a failure may have any text.
                text = "\n".join(line.replace("\n", " ") for line in lines)
                data = text.encode(errors="backslashreplace")
                socket.send_fds(sender, [data], descriptors)
            except OSError:
                pass

    def tell_ready(self, status: str) -> None:
        self.tell("READY=1", f"MAINPID={os.getpid()}", status)

    def feed(self, now: float) -> None:
        """Say that the service is alive, if that is due."""
        if self._feeding_s and now - self._fed >= self._feeding_s:
            self._fed = now
            self.tell("WATCHDOG=1")

    def store(self, name: str, descriptor: int | None) -> None:
        """Have systemd keep a descriptor under this name; None removes what it keeps."""
        self.tell("FDSTOREREMOVE=1", f"FDNAME={name}")
        if descriptor is not None:
            self.tell("FDSTORE=1", f"FDNAME={name}", descriptors=[descriptor])

    def tell_reloading(self) -> None:
        self.tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


def given_sockets() -> dict[str, int]:
    """Return the descriptors that systemd gave, by the names that servers use, once.

    Those that it kept for us have our names; sockets of a unit are `main.N`, in order.
    """
    count = int(os.environ.pop("LISTEN_FDS", "0"))
    names = os.environ.pop("LISTEN_FDNAMES", "").split(":")
    if os.environ.pop("LISTEN_PID", "") != str(os.getpid()):
        return {}
    found: dict[str, int] = {}
    for place in range(count):
        descriptor = _FIRST_DESCRIPTOR + place
        os.set_inheritable(descriptor, False)
        name = names[place] if place < len(names) else ""
        if name != CONTROL and name.rpartition(".")[0] not in ("main", "admin"):
            name = next(each for n in range(count) if (each := f"main.{n}") not in (*found, *names))
        found[name] = descriptor
    return found
