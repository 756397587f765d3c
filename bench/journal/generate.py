"""Generates journals, and the totals that they must add up to."""

import random
import time
from collections import Counter
from functools import partial
from typing import Any

import orjson

from bench.journal.life import ORDINARY, Life, Size, settle_town
from bench.journal.outlets import EPOCH, Outlet
from holdfast.journal.schema import Kind

_HOUR_US = 3_600_000_000
# About the events of one turn; the time between turns follows from it.
_A_TURN = 90


def generate(
    outlet: Outlet, *, events: int, nodes: int, hours: float, seed: int, size: Size = ORDINARY
) -> dict[str, Any]:
    """Write the journals of some nodes, each with a town of this size; return their totals."""
    began = time.process_time()
    each = events // nodes
    step_us = max(int(hours * _HOUR_US * _A_TURN / each), 1000)
    lives = []
    for n in range(nodes):
        dice = random.Random(seed * 1000 + n)
        node = f"n{n}"
        town = settle_town(n, dice, size)
        life = Life(node, town, dice, partial(outlet.write, node), step_us)
        life.run(each)
        lives.append(life)
    truth = _truth(lives)
    outlet.close(orjson.dumps(truth))
    return truth | {"cpu_s": round(time.process_time() - began, 1)}


def _truth(lives: list[Life]) -> dict[str, Any]:
    kinds: Counter[str] = sum((life.kinds for life in lives), Counter())
    copies = sum(life.copies for life in lives)
    return {
        "epoch": EPOCH,
        "events": kinds.total(),
        "frames": {f"n{n}": life.frames for n, life in enumerate(lives)},
        "kinds": dict(kinds),
        "dead_by_code": dict(sum((life.codes for life in lives), Counter())),
        "copies": copies,
        "open": copies + kinds[Kind.REPLAYED] - sum(life.settled for life in lives),
        "in_flight": sum(life.in_flight for life in lives),
    }
