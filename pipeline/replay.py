"""Plans replays of dead letters, which the server then carries out.

The server selects letters by their properties while it has them. The pipeline selects them over any
time span, and by other letters: it can leave out messages that died of most of their receivers.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from holdfast.pipeline.reports.dead import POISON
from holdfast.pipeline.reports.tables import Tables

# The check of each condition of the server's filter, for deaths in the tables.
CONDITIONS = {
    "channel": "channel = (select channel from {wanted})",
    "receiver": "receiver = (select receiver from {wanted})",
    "subject": "regexp_replace(receiver, '/-?[0-9]+$', '') = (select subject from {wanted})",
    "code": "code = (select code from {wanted})",
    "fingerprint": "fingerprint = (select fingerprint from {wanted})",
    "since": "unix_micros(ended_ts) >= (select since * 1000 from {wanted})",
    "until": "unix_micros(ended_ts) < (select until * 1000 from {wanted})",
}
# The letters that were not replayed yet.
_FRESH = """
    select letter, origin, msg, receiver, channel, code, fingerprint, generation,
        timestamp_micros(published_us) as published, ended_ts as died,
        cardinality(replay_of) > 0 as is_replay
    from {life} anti join (select explode(replay_of) as letter from {life}) using (letter)
    where state = 'dead' and letter is not null
"""
# Omits messages that a replay already delivered to this receiver, and repeats of a message. If a
# copy expired, was discarded or lost, this receiver may still get the message.
_WITHOUT_REPEATS = """
    with had as (
        select msg, origin, bool_and(state = 'dead') as only_died from {life}
        where receiver = (select aim from {wanted}) and cardinality(replay_of) > 0
            and state in ('dead', 'open', 'acked', 'written')
        group by msg, origin
    )
    select * from {fresh} left join had using (msg, origin)
    where only_died is null or only_died and is_replay and receiver = (select aim from {wanted})
"""
_WITHOUT_POISON = "select * from {letters} anti join {poison} using (msg, origin)"
PLAN = """
    select letter, origin, msg, receiver, channel, code, fingerprint, generation, published, died
    from {plan} order by msg, letter
"""
# The largest groups first.
SUMMARY = """
    select channel, code, count(*) as letters, count(distinct receiver) as receivers,
        min(died) as first, max(died) as last
    from {plan} group by channel, code order by letters desc, channel, code
"""
_LETTERS = "select msg, letter from {plan} order by msg, letter"


def plan(
    tables: Tables,
    conditions: Mapping[str, Any],
    *,
    without_poison: bool = False,
    to: str | None = None,
) -> None:
    """Make the table `plan`: the matching letters that were not replayed yet.

    Args:
        conditions: Fields of the server's filter, each with its value; see CONDITIONS.
        without_poison: Leave out messages that are dead letters of most of their receivers.
        to: The name of a session that gets all letters, but no message that it already has or
            that already became a dead letter for it.
    """
    wanted = {"aim": to or "", **conditions}
    types = ("bigint" if isinstance(value, int) else "string" for value in wanted.values())
    schema = ", ".join(map(" ".join, zip(wanted, types, strict=True)))
    tables.add("wanted", schema, [(*wanted.values(),)])
    tables.define("fresh", " and ".join([_FRESH, *(CONDITIONS[name] for name in conditions)]))
    tables.define("letters", "select * from {fresh}" if to is None else _WITHOUT_REPEATS)
    tables.define("poison", POISON)
    tables.materialize("plan", _WITHOUT_POISON if without_poison else "select * from {letters}")


def parts(tables: Tables, most: int) -> Iterator[list[str]]:
    """Yield the ids of the letters in order, as the server has them, at most `most` at once.

    Letters of one message stay together if possible: one receiver gets the message only once.
    """
    part: list[str] = []
    for _, of_message in groupby(tables.ask(_LETTERS).rows, key=itemgetter(0)):
        ids = [f"{letter:019d}" for _, letter in of_message]
        if part and len(part) + len(ids) > most:
            yield part
            part = []
        part += ids
        while len(part) > most:
            yield part[:most]
            part = part[most:]
    if part:
        yield part
