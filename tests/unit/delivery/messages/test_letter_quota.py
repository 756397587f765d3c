"""The letter quota: which letters take room, who has too many, and which leave first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.messages.letter_quota import OVERHEAD, LetterLimits, LetterQuota, Removal

KIB = 1024


def room(**limits: int) -> LetterQuota:
    made = LetterQuota(LetterLimits(**limits))
    made.is_known = True
    return made


def test_a_letter_takes_its_bytes_and_a_fixed_overhead() -> None:
    account = room()
    assert account.take("/a", "joe", 500)
    assert account.all.bytes == 500 + OVERHEAD
    account.free("/a", "joe", 500)
    assert (account.all.bytes, account.all.count) == (0, 0)


def test_a_letter_that_leaves_before_it_is_counted_takes_nothing_from_the_account() -> None:
    account = room()
    assert account.take("/a", "joe", 500)
    account.begin()
    account.free("/a", "joe", 500)
    assert (account.all.bytes, account.all.count) == (0, 0)


def test_a_single_letter_always_finds_room() -> None:
    account = room(bytes=10, share=10)
    assert account.take("/a", "joe", 1000)
    assert not account.take("/a", "joe", 1000)


def test_a_channel_or_subject_that_used_up_its_share_takes_no_room_from_others() -> None:
    account = room(bytes=10_000 * KIB, share=8 * KIB)
    while account.take("/a", "mallory", 0):
        pass
    assert not account.take("/b", "mallory", 0)
    assert not account.take("/a", "joe", 0)
    assert account.take("/b", "joe", 0)


def test_there_is_no_excess_until_all_letters_are_counted() -> None:
    account = room(count=1)
    account.is_known = False
    account.add("/a", "joe", 1)
    account.add("/a", "joe", 1)
    assert account.excess() is None
    account.is_known = True
    assert account.excess() is not None


def test_the_first_letter_in_excess_calls_on_excess() -> None:
    calls: list[None] = []
    account = LetterQuota(LetterLimits(count=2), on_excess=lambda: calls.append(None))
    for _ in range(2):
        account.add("/a", "joe", 1)
    assert calls == []
    account.add("/a", "joe", 1)
    assert calls == [None]


def test_a_subject_beyond_its_share_loses_letters_first() -> None:
    account = room(bytes=4 * KIB, share=2 * KIB)
    account.add("/a", "ann", 0)
    for number in range(4):
        account.add(f"/{number}", "joe", 0)
    excess = account.excess()
    assert excess is not None
    assert (excess.why, excess.subject, excess.channel) == (Removal.SHARE, "joe", None)
    assert (excess.bytes, excess.average) == (2 * KIB, KIB)


NAMES = st.sampled_from(["a", "b", "c"])


@pytest.mark.slow
@given(
    st.lists(st.tuples(NAMES, NAMES, st.integers(0, 5 * KIB), st.booleans()), max_size=60),
)
def test_the_quota_counts_exactly_the_letters_and_limits_their_room(
    acts: list[tuple[str, str, int, bool]],
) -> None:
    account = room(count=10, bytes=40 * KIB, share=16 * KIB)
    letters: list[tuple[str, str, int]] = []
    for channel, subject, size, leaves in acts:
        if leaves and letters:
            account.free(*letters.pop(0))
        elif account.take(channel, subject, size):
            letters.append((channel, subject, size))
        assert account.all.count == len(letters) <= 12
        assert account.all.bytes == sum(each[2] + OVERHEAD for each in letters) <= 45 * KIB
        for place in (0, 1):
            for name in "abc":
                of_name = [each for each in letters if each[place] == name]
                assert sum(each[2] + OVERHEAD for each in of_name) <= 18 * KIB
    while (excess := account.excess()) is not None:
        wanted = [
            each
            for each in letters
            if excess.channel in (None, each[0]) and excess.subject in (None, each[1])
        ]
        letters.remove(wanted[0])
        account.free(*wanted[0])
    assert account.all.bytes <= 40 * KIB
    assert account.all.count <= 10
