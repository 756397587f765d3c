"""With a named session, Faye loses nothing while connections, servers and pages end."""

import json
import os
import signal
import time
from contextlib import ExitStack
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.test_workers import children
from tests.clients.deployment import Deployment, deployed
from tests.clients.node_client import LONG_POLLING, WEBSOCKET, Scenario, play, written
from tests.clients.publishing import Publisher
from tests.serving import START_LIMIT_S

SUITE = "faye_survival"
SCENARIO = "losesNothing"
CHANNEL = "/news"
READERS = (WEBSOCKET, LONG_POLLING)
DEEDS = (
    *("cut", "loseReply", "kill", "cut", "reload", "restart", "crash", "loseReply", "cut"),
    *("kill", "crash", "kill", "reload", "cut", "loseReply", "kill", "restart", "cut"),
)
LIMIT_S = 300.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


class Killer:
    """Kills the workers in turn, each as soon as none is missing."""

    def __init__(self, deployment: Deployment, count: int) -> None:
        self._deployment, self._count = deployment, count
        self._places = cycle(range(count))

    def kill(self) -> None:
        ends = time.monotonic() + START_LIMIT_S
        while len(workers := self._workers()) != self._count:
            assert time.monotonic() < ends, workers
            time.sleep(0.05)
        os.kill(workers[next(self._places)], signal.SIGKILL)

    def _workers(self) -> list[int]:
        """Their pids: they are children of those of the supervisor."""
        return [pid for importer in children(self._deployment.pid) for pid in children(importer)]


@pytest.mark.parametrize("workers", [1, 3])
def test_faye_loses_nothing_and_hears_marked_repeats_only(workers: int, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    settings = {"max_queue": 100_000, "workers": workers}
    with deployed(tmp_path, settings) as deployment, ExitStack() as stack:
        # What another worker has not sent when it is killed would be lost otherwise.
        publisher = Publisher(
            *("one", deployment.url, CHANNEL), rate=100.0, keeps_connection=True, is_durable=True
        )
        services = {
            "publish": lambda: stack.enter_context(publisher),
            "publish the last one": stack.close,
            "kill": Killer(deployment, workers).kill,
            "restart": deployment.restart,
        }
        facts = {"channel": CHANNEL, "transports": READERS, "deeds": DEEDS, "report": str(report)}
        scenario = Scenario(SCENARIO, facts=facts)
        play(SUITE, scenario, "", deployment, services, limit_s=LIMIT_S)
    accepted = [number for number in range(publisher.count) if number not in publisher.unsure]
    assert len(accepted) > publisher.count / 2
    told = json.loads(report.read_text("utf-8"))
    found = {name: wrongs(each, accepted) for name, each in zip(READERS, told, strict=True)}
    assert found == {name: {} for name in READERS}


def wrongs(told: dict[str, Any], accepted: list[int]) -> dict[str, list[int]]:
    """What a reader missed, did twice, heard out of order, or heard again without being told so."""
    done, pages, late, unmarked = told["done"], dict[int, int](), [], []
    newest = -1
    for number, page, redelivered in told["heard"]:
        # A page that heard a message and did not finish it leaves it to another one.
        if number in pages and (page == pages[number] or not redelivered):
            unmarked.append(number)
        elif number not in pages and number < newest:
            late.append(number)
        pages[number] = page
        newest = max(newest, number)
    found = {
        "missed": sorted({*accepted} - {*done}),
        "twice": [one for one, other in pairwise(sorted(done)) if one == other],
        "late": late,
        "unmarked": unmarked,
    }
    return {what: numbers for what, numbers in found.items() if numbers}


def test_what_a_reader_should_not_hear_is_found() -> None:
    heard = [[0, 1, 0], [2, 1, 0], [1, 1, 0], [2, 2, 1], [1, 2, 0], [2, 2, 1]]
    found = wrongs({"heard": heard, "done": [0, 0, 2]}, [0, 1, 2])
    assert found == {"missed": [1], "twice": [0], "late": [1], "unmarked": [1, 2]}
    assert wrongs({"heard": [[0, 1, 0], [0, 2, 1], [1, 2, 0]], "done": [0, 1]}, [0, 1]) == {}


def test_no_scenario_is_forgotten() -> None:
    assert written(SUITE) == {SCENARIO}
