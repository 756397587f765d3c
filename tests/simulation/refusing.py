"""Clients that refuse messages: for good, or until later; some messages have a lifetime."""

import random

from tests.simulation.talker import Message
from tests.simulation.workers import LATER, Trade

CHANNEL = "/orders/a"
# What a letter says of what its receiver said, where these differ.
TOLD = {"odd": "user.update.internalError"}
DEAD = ("user.update.deadMessage", "user.update.error", "user.orders.unknown", *TOLD)
_LIFETIMES_MS = (300, 1_500, 6_000)
# How often a message has one.
_MORTAL = 0.3
# In some sessions there is no room for many messages.
TRADE = Trade(
    patterns=(CHANNEL,),
    verdicts={None: 0.72, LATER: 0.12, **dict.fromkeys(DEAD, 0.04)},
    delays_ms=(100, 600, 3_000),
    options=({}, {}, {"delay": 2_000}, {"queue": {"maxEntries": 4}}, {"maxEntries": 2}),
    turns=False,
)


def mortal(_: str) -> Message:
    """Return the options of the next message on this channel."""
    if random.random() >= _MORTAL:
        return {}
    return {"expiration": {"lifeTime": random.choice(_LIFETIMES_MS), "forceDestroy": True}}
