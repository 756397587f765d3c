"""The books of hosts: what does not balance is said, and so is a shard that shows none."""

import pytest

from tests.chaos.host_books import faults, read

PAGE = """
holdfast_entries_accepted_total{shard="0"} 7.0
holdfast_entries_restored_total{shard="0"} 3.0
holdfast_entries_borrowed{shard="0"} 1.0
holdfast_entries_settled_total{shard="0",outcome="acked"} 8.0
holdfast_entries_settled_total{shard="0",outcome="dead"} 1.0
holdfast_entries_waiting{shard="0"} 2.0
holdfast_entries_in_flight{shard="0"} 0.0
"""


def test_books_that_balance_are_fine() -> None:
    assert faults(read(PAGE), [0]) == []


def test_a_shard_without_books_is_missed() -> None:
    assert faults(read(PAGE), [0, 1]) == ["shard 1 shows no books"]


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ('"acked"} 8.0', '"acked"} 7.0', "shard 0: 11 entries came, 10 are known"),
        ('"dead"} 1.0', '"dead"} 2.0', "shard 0: 11 entries came, 12 are known"),
        ('restored_total{shard="0"} 3.0', 'restored_total{shard="0"} 2.0', None),
        ('borrowed{shard="0"} 1.0', 'borrowed{shard="0"} -1.0', None),
    ],
)
def test_an_entry_that_is_lost_or_double_is_seen(one: str, other: str, said: str | None) -> None:
    assert one in PAGE
    found = faults(read(PAGE.replace(one, other)), [0])
    assert len(found) == 1
    assert said is None or found == [said]
