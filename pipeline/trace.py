"""The steps of one message, from the tables, which go back further than the journal.

A server runs this module as a program, because it does not load the libraries for tables:
`python -m holdfast.pipeline.trace NAMES NS PLACE...` prints the steps, or a sentence, as JSON.
"""

import json
import os
import signal
import sys
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.pipeline.failures import PipelineFailed, in_words, is_of_others
from holdfast.pipeline.lake import EVENTS, TABLES, Lake
from holdfast.pipeline.on_duckdb import opened
from holdfast.pipeline.storage.place import place_of
from holdfast.pipeline.table_files import paths_of

_NS_PER_S = 1_000_000_000
_LONGEST_S = 20
# The clocks of nodes differ, and may be set back.
_BEFORE = timedelta(days=1)
_STEPS = """
    select epoch_us(ts) as at_us, node, kind, receiver, channel, attempt, code,
        lpad(cast(letter as varchar), 19, '0') as letter, copies, sender
    from {events} where (msg, origin) in (select msg, origin from {wanted}) and pos >= 0
    order by ts, seq, pos
"""


def steps(lake: Lake, origins: Collection[str], ns: int) -> list[dict[str, Any]]:
    """Return the steps of a message, named as in the administration.

    Args:
        origins: The names with which its id may begin: an upgrade or an earlier release may have
            changed it.

    Raises:
        PipelineFailed: There are no tables, or they cannot be read.
    """
    published = datetime.fromtimestamp(ns // _NS_PER_S, UTC) - _BEFORE
    # A bucket sends only these.
    found = lake.found(EVENTS, published.date())
    files = paths_of(file for file in found if file.may_have(ns, ns + 1))
    with opened(is_mixed=lake.is_mixed) as tables:
        tables.add_files("events", files, ", ".join(TABLES[EVENTS]))
        tables.add("wanted", "origin string, msg bigint", [(origin, ns) for origin in origins])
        return tables.ask(_STEPS).by_name()


def _main(origins: str, number: str, *names: str) -> None:
    # The server has priority, and may be killed before it can end this program.
    os.nice(19)
    signal.alarm(_LONGEST_S)
    places = [*map(place_of, names)]
    answer: list[dict[str, Any]] | str
    try:
        place = next((place for place in places if place.is_dir()), places[0])
        answer = steps(Lake(place), origins.split(), int(number))
    except Exception as error:
        if not isinstance(error, PipelineFailed) and not is_of_others(error):
            raise
        answer = in_words(error)
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    _main(*sys.argv[1:])
