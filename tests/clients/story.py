"""Clients of all kinds that hear what is published while a deployment is restarted."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from statistics import median

from tests.clients.deployment import Restart
from tests.clients.hearing import Hearing
from tests.clients.node_client import LONG_POLLING, WEBSOCKET, Reachable, Scenario, play
from tests.clients.publishing import Publisher
from tests.slowness import times_slower

SCENARIO = "hearsAll"
# How long clients hear messages without a restart, to compare with, after some time to warm up;
# and after each restart.
_WARM_UP_S = 0.5
_QUIET_S = 1.5
_AFTER_S = 0.7
# How long a client may be silent around a restart: mostly, and once, where everything may take
# three times as long.
_BAR_S = 1.0
_LONGEST_S = 3.0
_BEGIN_LIMIT_S = 150.0
# For all restarts, too; the long form has many.
_LIMIT_S = 600.0
_PATIENCE_S = 60.0
_CHANNEL = "/news"
_KEEPING, _CONNECTING = "keeps a connection", "connects each time"
_RATES = {_KEEPING: 150.0, _CONNECTING: 50.0}

Deed = Callable[[], Restart]
Witnesses = Sequence[Mapping[str, str | None]]


def _witnesses(client: str, *transports: str) -> Witnesses:
    """A client over each transport, with and without a name."""
    return [
        {
            "name": f"{client} over {transport}" + (", named" if is_named else ""),
            "client": client,
            "transport": transport,
            "session": f"{client}-{transport}/1" if is_named else None,
        }
        for transport in transports
        for is_named in (False, True)
    ]


_BOTH = (WEBSOCKET, LONG_POLLING)
SUITES: Mapping[str, Witnesses] = {
    "unnoticed": [
        *_witnesses("cometd.js", *_BOTH),
        *_witnesses("faye", *_BOTH),
    ],
    "Unnoticed": _witnesses("java", *_BOTH),
    "witnesses": [*_witnesses("python", *_BOTH), *_witnesses("curl", LONG_POLLING)],
}


class Story:
    """What happened, and what somebody noticed of it."""

    def __init__(
        self,
        deployment: Reachable,
        home: Path,
        suites: Mapping[str, Witnesses] = SUITES,
        *,
        rates: Mapping[str, float] = _RATES,
        is_durable: bool = False,
        limit_s: float = _LIMIT_S,
    ) -> None:
        """With `is_durable`, whatever is accepted survives a kill of any worker."""
        self._rates, self._is_durable, self._limit_s = rates, is_durable, limit_s
        self._deployment = deployment
        self._home = home
        self._suites = suites
        self._restarts: list[Restart] = []
        self._hearings: list[Hearing] = []
        self._publishers: list[Publisher] = []
        self._quiet = (0.0, 0.0)

    def play(self, deeds: Iterable[Deed]) -> None:
        """Do all this, one after the other, while everybody hears what is published."""
        is_over = threading.Event()
        arrivals = threading.Barrier(len(self._suites) + 1)

        def arrive() -> None:
            arrivals.wait(_BEGIN_LIMIT_S)
            is_over.wait(self._limit_s)

        def give_up(playing: Future[list[Hearing]]) -> None:
            if playing.exception() is not None:
                arrivals.abort()

        with ThreadPoolExecutor(len(self._suites)) as pool:
            playing = [pool.submit(self._play_suite, each, arrive) for each in self._suites]
            for each in playing:
                each.add_done_callback(give_up)
            # Whoever did not arrive says below why.
            with suppress(threading.BrokenBarrierError):
                try:
                    arrivals.wait(_BEGIN_LIMIT_S)
                    self._tell(deeds)
                finally:
                    is_over.set()
            self._hearings = [each for done in playing for each in done.result()]

    def _tell(self, deeds: Iterable[Deed]) -> None:
        with ExitStack() as stack:
            for name, rate in self._rates.items():
                publisher = Publisher(
                    *(name, self._deployment.url, _CHANNEL),
                    rate=rate,
                    keeps_connection=name == _KEEPING,
                    is_durable=self._is_durable,
                )
                self._publishers.append(stack.enter_context(publisher))
            time.sleep(_WARM_UP_S + _QUIET_S)
            ended_s = time.time()
            self._quiet = (ended_s - _QUIET_S, ended_s)
            for deed in deeds:
                self._restarts.append(deed())
                time.sleep(_AFTER_S)

    def _play_suite(self, suite: str, arrive: Callable[[], None]) -> list[Hearing]:
        report = self._home / f"{suite}.json"
        facts = {
            "channel": _CHANNEL,
            "publishers": len(self._rates),
            "patience": round(_PATIENCE_S * 1000),
            "witnesses": self._suites[suite],
            "report": str(report),
        }
        scenario = Scenario(SCENARIO, facts=facts)
        services = {"everybody is there": arrive}
        play(suite, scenario, "", self._deployment, services, limit_s=self._limit_s)
        return [Hearing.told(each) for each in json.loads(report.read_text("utf-8"))]

    def noticed(self, *, may_reconnect: bool = False, share: float = 1.0) -> list[str]:
        """What somebody noticed; it should be nothing, or at most that a connection ended.

        Args:
            share: What a server has of the processors that it would have alone. The servers of
                several shards start all at once.
        """
        counts = {each.name: each.count for each in self._publishers}
        slower = times_slower() / share
        found = [f"{each.name}: {what}" for each in self._publishers for what in each.failures]
        for hearing in self._hearings:
            found += hearing.wrongs(counts, may_reconnect=may_reconnect)
            longest_s, median_s = _both(self._silences_s(hearing))
            # On a busy machine, clients are silent at other times, too.
            always_s = 2 * hearing.silence_s(*self._quiet)
            bar_s, last_s = (each * slower + always_s for each in (_BAR_S, _LONGEST_S))
            if median_s > bar_s or longest_s > last_s:
                found.append(
                    f"{hearing.name} was silent: {longest_s:.2f} s, median {median_s:.2f} s"
                )
        return found

    def _silences_s(self, hearing: Hearing) -> list[float]:
        return [hearing.silence_s(each.begun_s, each.ended_s + _AFTER_S) for each in self._restarts]

    def misses(self) -> list[str]:
        """Return what somebody should have heard, and did not."""
        return [
            each
            for publisher in self._publishers
            for hearing in self._hearings
            for each in hearing.misses(
                publisher.name,
                [n for n in range(publisher.count) if n not in publisher.unsure],
            )
        ]

    def ends(self) -> Mapping[str, int]:
        """Return how many sessions each client has had."""
        return {each.name: each.handshakes for each in self._hearings}

    def disorder(self) -> list[str]:
        """Return what somebody heard twice, or after what was published later."""
        names = [each.name for each in self._publishers]
        return [each for hearing in self._hearings for each in hearing.disorder(names)]

    def figures(self) -> str:
        """A table of silences in seconds, for those who read the output of the test."""
        rows = [
            (hearing.name, *_both(self._silences_s(hearing)), hearing.silence_s(*self._quiet))
            for hearing in self._hearings
        ]
        times = [each.ended_s - each.begun_s for each in self._restarts]
        lines = [f"{'silence of':34} longest  median  without a restart"]
        lines += [f"{name:34} {a:7.3f} {b:7.3f} {c:7.3f}" for name, a, b, c in rows]
        lines += [
            f"{each.name:34} {each.slowest_s:7.3f} of {each.count}" for each in self._publishers
        ]
        lines += ["{:34} {:7.3f} {:7.3f}".format("restarts took", *_both(times))]
        return "\n".join([*lines, ""])


def _both(times_s: Sequence[float]) -> tuple[float, float]:
    return max(times_s), median(times_s)
