"""Figures of a whole month, with the largest numbers, for the cases that read them."""

import time
from pathlib import Path
from typing import Any

from redis import Redis

from holdfast.delivery.basics.ranking import MOST, Ranking, RankingKind
from holdfast.store.format.figure_records import COUNTS, LENGTHS, FigureRow, pack_ranking, pack_row
from holdfast.store.format.keys import RedisKeys
from holdfast.store.past_figures import HOURS, MINUTES, ranking_places
from holdfast.web.admin.figure_readings import TIMES

_LARGEST = 1 << 60
_S_PER_MINUTE = 60


def fill_past(data: str) -> None:
    """Write them into the embedded store of a server that has not read its own yet."""
    now = int(time.time()) // _S_PER_MINUTE
    times = [[_LARGEST] * (len(bounds) + 1) for bounds in TIMES.values()]
    counts, lengths = [_LARGEST] * len(COUNTS), [_LARGEST] * len(LENGTHS)
    names = {f"/stall/{number}": _LARGEST - number for number in range(MOST)}
    fields: dict[Any, Any] = {}
    for places in (MINUTES, HOURS):
        for at in range(places.since(now), now + 1, places.length):
            row = FigureRow(at, places.length * 60_000, counts, lengths, times)
            fields[places.field(at)] = pack_row(row, places.length)
    for kind in RankingKind:
        for places in ranking_places(kind):
            for at in range(places.since(now), now + 1, places.length):
                fields[places.field(at)] = pack_ranking(at, Ranking(names))
    store = Redis(unix_socket_path=str(Path(data) / "store.sock"))
    store.hset(RedisKeys("holdfast").figures, mapping={**fields})
    store.close()
