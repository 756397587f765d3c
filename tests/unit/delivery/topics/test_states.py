"""The states of topics, row by row."""

from itertools import product

import pytest

from holdfast.delivery.topics.states import (
    NEXT,
    IllegalTopic,
    TopicInput,
    TopicState,
    state_of,
    step,
)

# Columns: configured, in its history, in queues, exact subscription. As xmlBlaster's requirement
# engine.message.lifecycle has them.
TABLE = """
ALIVE         1 1 1 1
ALIVE         1 1 1 0
ALIVE         1 1 0 1
ALIVE         1 1 0 0
ALIVE         1 0 1 1
ALIVE         1 0 1 0
ALIVE         1 0 0 1
UNREFERENCED  1 0 0 0
invalid       0 1 1 1
invalid       0 1 1 0
invalid       0 1 0 1
invalid       0 1 0 0
invalid       0 0 1 1
SOFTERASED    0 0 1 0
UNCONFIGURED  0 0 0 1
DEAD          0 0 0 0
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]

# Columns: configured, referred, released, subscribed, unsubscribed, erased, timed out.
MOVES = """
UNCONFIGURED  A   -  -   U  UD  D   -
ALIVE         A   A  AR  A  AR  SD  -
UNREFERENCED  R   A  -   A  -   D   D
SOFTERASED    A   S  D   A  -   SD  -
DEAD          AR  S  -   U  -   -   -
"""
LETTERS = {name[0]: name for name in ("ALIVE", "UNCONFIGURED", "SOFTERASED", "DEAD")}
LETTERS["R"] = "UNREFERENCED"


def found(row: list[str]) -> TopicState:
    configured, history, queued, subscribed = (text == "1" for text in row[1:])
    return state_of(
        is_configured=configured,
        has_history=history,
        is_queued=queued,
        is_subscribed=subscribed,
    )


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_a_combination_of_conditions_is_one_topic_state_or_illegal(row: list[str]) -> None:
    if row[0] == "invalid":
        with pytest.raises(IllegalTopic, match="configured, history, queued, subscribed"):
            found(row)
    else:
        assert found(row) is TopicState[row[0]]


def test_the_table_has_every_combination_of_conditions() -> None:
    assert sorted(tuple(row[1:]) for row in ROWS) == sorted(product("01", repeat=4))


@pytest.mark.parametrize("line", MOVES.strip().splitlines(), ids=lambda line: line.split()[0])
def test_a_state_leads_only_where_the_table_says(line: str) -> None:
    state, *after = line.split()
    for seen, letters in zip(TopicInput, after, strict=True):
        allowed = {TopicState[LETTERS[letter]] for letter in letters.strip("-")}
        assert NEXT[TopicState[state]].get(seen, frozenset()) == allowed
        for end in TopicState:
            if end in allowed:
                assert step(TopicState[state], seen, end) is end
            else:
                with pytest.raises(IllegalTopic, match=f"{end.name} after {seen.name}"):
                    step(TopicState[state], seen, end)
