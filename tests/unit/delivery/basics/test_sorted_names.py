"""Names of channels in order, found by a pattern or by their beginning."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.channels import Channels, covers
from holdfast.delivery.basics.sorted_names import Look, SortedNames

NAMES = ("/a", "/a/b", "/a/b/c", "/a/~", "/ab", "/a0", "/b/b")


def asked_for(looks: Iterable[Look]) -> list[str]:
    return [name for name, is_asked_for in looks if is_asked_for]


def sorted_names(*names: str) -> SortedNames:
    known = dict.fromkeys(names)
    found = SortedNames(known)
    for name in known:
        found.add(name)
    return found


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(NAMES), st.booleans())))
def test_names_are_found_in_order_after_additions_and_removals(
    changes: list[tuple[bool, str, bool]],
) -> None:
    known: dict[str, None] = {}
    names = SortedNames(known)
    for is_new, name, is_asked in changes:
        if is_new and name not in known:
            known[name] = None
            names.add(name)
        elif not is_new and name in known:
            del known[name]
            names.remove(name)
        if is_asked:
            assert asked_for(names.beginning("/")) == sorted(known)
    for pattern in ("/**", "/*", "/a/*", "/a/**", "/b/b", "/c/*"):
        expected = [name for name in sorted(known) if covers(pattern, name)]
        assert asked_for(names.covered_by(Channels().named(pattern))) == expected


@pytest.mark.parametrize(
    ("prefix", "after", "found"),
    [
        ("", "", ["/a", "/a/b", "/a/b/c", "/a/~", "/a0", "/ab", "/b/b"]),
        ("/a/", "", ["/a/b", "/a/b/c", "/a/~"]),
        ("/a/", "/a/b", ["/a/b/c", "/a/~"]),
        ("/a/", "/a/b/b", ["/a/b/c", "/a/~"]),
        ("/a/", "/b", []),
        ("/b", "/a", ["/b/b"]),
        ("/c", "", []),
    ],
)
def test_names_are_found_by_their_beginning(prefix: str, after: str, found: list[str]) -> None:
    assert asked_for(sorted_names(*NAMES).beginning(prefix, after)) == found


def test_a_pattern_finds_only_the_names_after_a_given_one() -> None:
    names = sorted_names(*NAMES)
    wild, exact = Channels().named("/a/*"), Channels().named("/a/b")
    assert asked_for(names.covered_by(wild, "/a/b")) == ["/a/~"]
    assert asked_for(names.covered_by(exact)) == ["/a/b"]
    assert asked_for(names.covered_by(exact, "/a/b")) == []


class Counted(str):
    """A name that counts how often it is compared with others."""

    __slots__ = ()
    comparisons = 0

    def __lt__(self, other: str) -> bool:
        Counted.comparisons += 1
        return str.__lt__(self, other)


@pytest.mark.slow
def test_adding_and_finding_one_of_very_many_names_takes_few_comparisons() -> None:
    known: dict[str, None] = {}
    names, most = SortedNames(known), 0
    for n in range(10_000):
        name = Counted(f"/{n}")
        Counted.comparisons = 0
        known[name] = None
        names.add(name)
        assert next(names.beginning(name)) == (name, True)
        most = max(most, Counted.comparisons)
    assert most < 50
    assert asked_for(names.beginning("/")) == sorted(known)
    for gone in [each for n, each in enumerate(known) if n % 10]:
        del known[gone]
        names.remove(gone)
    assert asked_for(names.beginning("/")) == sorted(known)


def test_a_pattern_looks_at_only_one_of_the_names_below_a_channel() -> None:
    names = sorted_names("/a/b/1", "/a/b/2", "/a/c", "/a/d/1")
    looks = [("/a/b/1", False), ("/a/c", True), ("/a/d/1", False)]
    assert list(names.covered_by(Channels().named("/a/*"))) == looks
