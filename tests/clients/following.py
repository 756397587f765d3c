"""What the scenario of `js/durable_streams.js` needs around it, in Node and in a page."""

from collections.abc import Callable
from itertools import count
from pathlib import Path

from tests.clients.mortal_server import MortalServer
from tests.serving import Settings

SUITE = "durable_streams"
# How the client waits for messages.
WAYS = ("long-poll", "sse")


def settings_in(home: Path) -> Settings:
    """The settings of a server that keeps what is published there, whatever happens to it."""
    kept = {"history": 100, "durable": True}
    return {"data": str(home), "timeout": 2000, "channels": {f"/{SUITE}/**": kept}}


def services(mortal: MortalServer, channel: str) -> dict[str, Callable[[], None]]:
    """What the scenario asks for; each publish is the next number."""
    numbers = count()

    def publish() -> None:
        mortal.publish(channel, next(numbers))

    return {**mortal.services(), "publish": publish}
