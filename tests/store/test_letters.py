"""Dead letters in the store: queries, removal, quota, export and import."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.delivery.letters.dead import MAX_REASON, DeadLetter, LetterState
from holdfast.delivery.messages.letter_quota import LetterLimits, LetterQuota, Removal
from holdfast.store.format import letter_records, scripts
from holdfast.store.format.operator_input import GroupedBy
from holdfast.store.format.scripts import ScriptCall
from holdfast.store.letters import grouping
from holdfast.store.letters import lines as letter_lines
from holdfast.store.letters import search as letter_search
from holdfast.store.letters.administration import Import, Refusal
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.letters.lines import LineUnfit
from holdfast.store.links.connection import StoreUnavailable
from tests.store.servers import ValkeyServer
from tests.store.store_process import (
    BASE,
    KEYS,
    StoreProcess,
    letter,
    session,
    store_process,
    until,
)

ALL = LetterFilter()
NOW = BASE + 10**9
SECOND = 1_000_000_000


async def dead_letter(at: StoreProcess, *letters: DeadLetter) -> None:
    at.store.dead_letter(letters, None)
    await at.answered()


def numbers(letters: list[DeadLetter]) -> list[int]:
    return [int(letter.id) - BASE for letter in letters]


async def query(at: StoreProcess, which: LetterFilter = ALL, limit: int = 100) -> list[int]:
    return numbers((await at.letters.search.query(which, None, limit)).letters)


VARIOUS = [
    letter(1, channel="/a", receiver="joe/1", code="user.one"),
    letter(2, channel="/b", receiver="joe/2", code="user.one")._replace(
        expiration={"lifeTime": 1000, "forceDestroy": True}
    ),
    letter(3, channel="/a", receiver="ann/1", code="user.two"),
    letter(4, channel="/a", receiver="joe/1", code="user.two"),
    letter(5, channel="/a", receiver="joe/1", code="user.one", reason="other"),
]

# Queries


async def test_the_latest_letter_comes_first(at: StoreProcess) -> None:
    await dead_letter(at, *VARIOUS)
    assert await query(at) == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("which", "found"),
    [
        (LetterFilter(channel="/a"), [5, 4, 3, 1]),
        (LetterFilter(receiver="joe/1"), [5, 4, 1]),
        (LetterFilter(subject="joe"), [5, 4, 2, 1]),
        (LetterFilter(code="user.one"), [5, 2, 1]),
        (LetterFilter(fingerprint=VARIOUS[0].fingerprint), [5, 1]),
        (LetterFilter(channel="/a", code="user.one"), [5, 1]),
        (LetterFilter(channel="/a", subject="joe", code="user.two"), [4]),
        (LetterFilter(channel="/b", receiver="ann/1"), []),
        (LetterFilter(channel="/none"), []),
        (LetterFilter(state=LetterState.NEW), [5, 4, 3, 2, 1]),
        (LetterFilter(state=LetterState.REPLAYED), []),
        (LetterFilter(ids=(VARIOUS[1].id, VARIOUS[3].id, "0" * 19)), [4, 2]),
        (LetterFilter(ids=(VARIOUS[1].id, VARIOUS[3].id), subject="joe", code="user.one"), [2]),
    ],
)
async def test_a_filter_finds_the_letters_that_meet_all_its_conditions(
    at: StoreProcess, which: LetterFilter, found: list[int]
) -> None:
    await dead_letter(at, *VARIOUS)
    assert await query(at, which) == found
    assert await at.letters.search.count(which) == len(found)


class Explained(LetterFilter):
    """Has a condition without an index."""

    reason: str | None = None

    def matches(self, letter: DeadLetter) -> bool:
        return super().matches(letter) and self.reason in (None, letter.reason)


async def test_a_condition_without_an_index_is_checked_letter_by_letter(at: StoreProcess) -> None:
    await dead_letter(at, *VARIOUS)
    assert await query(at, Explained(reason="other")) == [5]
    assert await at.letters.search.count(Explained(reason="other")) == 1
    assert await at.letters.search.count(Explained(reason="other", receiver="ann/1")) == 0


async def test_a_filter_by_time_includes_its_start_and_excludes_its_end(at: StoreProcess) -> None:
    await dead_letter(at, *(letter(n * 1_000_000) for n in range(10)))
    ms = BASE // 1_000_000
    which = LetterFilter(since=ms + 3, until=ms + 6)
    assert await query(at, which) == [5_000_000, 4_000_000, 3_000_000]
    assert await at.letters.search.count(which) == 3
    assert await query(at, LetterFilter(since=ms + 8)) == [9_000_000, 8_000_000]
    assert await query(at, LetterFilter(until=ms + 1, channel="/orders/new")) == [0]
    assert await query(at, LetterFilter(since=ms + 6, until=ms + 3)) == []


async def test_pages_follow_each_other_without_gap_or_repetition(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_search, "_STEP", 7)
    monkeypatch.setattr(letter_search, "_STEPS", 3)
    await dead_letter(at, *(letter(n, channel="/a" if n % 5 else "/b") for n in range(100)))
    for which in (ALL, LetterFilter(channel="/b"), LetterFilter(channel="/a", subject="joe")):
        found: list[int] = []
        cursor = None
        while True:
            page = await at.letters.search.query(which, cursor, 4)
            found += numbers(page.letters)
            cursor = page.cursor
            if cursor is None:
                break
        assert found == [n for n in range(99, -1, -1) if which.matches(at_number(n))]


def at_number(n: int) -> DeadLetter:
    return letter(n, channel="/a" if n % 5 else "/b")


async def test_a_query_looks_at_a_bounded_number_of_letters(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_search, "_STEP", 5)
    monkeypatch.setattr(letter_search, "_STEPS", 2)
    await dead_letter(at, *(letter(n) for n in range(50)))
    page = await at.letters.search.query(LetterFilter(state=LetterState.REPLAYED), None, 10)
    assert (page.letters, page.cursor) == ([], str(BASE + 40))


async def test_a_list_has_the_sizes_of_events_but_not_the_events(at: StoreProcess) -> None:
    await dead_letter(at, letter(1))
    [found] = (await at.letters.search.query(ALL, None, 1)).letters
    assert (found.wire, found.size) == (b"", len(letter(1).wire))
    whole = await at.letters.search.get(letter(1).id)
    assert whole == letter(1)


async def test_an_unknown_letter_is_not_found(at: StoreProcess) -> None:
    assert await at.letters.search.get("0" * 19) is None


@pytest.mark.parametrize("odd", ["*", "?", "[a-z]", "{x}", "}{", "a b", "a\r\nFLUSHALL", "\0", "'"])
async def test_names_with_characters_that_redis_interprets_are_found(
    odd: str, at: StoreProcess
) -> None:
    others = [letter(n, channel=f"/{n}", receiver=f"{n}/1") for n in range(3)]
    await dead_letter(at, *others, letter(7, channel=f"/{odd}", receiver=f"{odd}/1"))
    assert await query(at, LetterFilter.model_construct(channel=f"/{odd}")) == [7]
    assert await query(at, LetterFilter.model_construct(receiver=f"{odd}/1")) == [7]
    assert await query(at, LetterFilter.model_construct(subject=odd)) == [7]
    assert await query(at) == [7, 2, 1, 0]


async def test_letters_are_grouped_by_fingerprint_with_counts_and_receivers(
    at: StoreProcess,
) -> None:
    await dead_letter(
        at,
        *(letter(n, receiver=f"joe/{n % 3 + 1}", reason=f"no order {n}") for n in range(10)),
        *(letter(n, code="user.other") for n in range(10, 14)),
    )
    groups, total, following = await at.letters.search.groups(None, 10)
    assert (total, following) == (14, None)
    assert [(group.count, group.receivers) for group in groups] == [(10, 3), (4, 1)]
    assert groups[0].sample.id == str(BASE + 9)
    assert (groups[0].first, groups[0].last) == (BASE // 10**6, BASE // 10**6)
    assert await at.letters.search.groups(None, 1) == ([groups[0]], 14, 1)
    assert await at.letters.search.groups(None, 1, start=1) == ([groups[1]], 14, None)
    other = groups[1].sample.fingerprint
    assert await at.letters.search.groups(other, 10) == ([groups[1]], 14, None)
    assert await at.letters.search.groups("unknown", 10) == ([], 14, None)


async def test_letters_are_grouped_by_code_and_by_channel_pattern(at: StoreProcess) -> None:
    await dead_letter(
        at,
        *(letter(n, channel=f"/orders/{n}/paid", receiver=f"joe/{n}") for n in range(1, 6)),
        *(letter(n, channel="/orders/1/paid", receiver=f"ann/{n}") for n in range(6, 9)),
        letter(9, channel="/news", receiver="joe/1", reason="the last one"),
        letter(10, channel="/orders/1/paid", code="user.other"),
    )
    search = at.letters.search

    async def kinds(by: GroupedBy, **part: int) -> list[tuple[str | None, str, int, int]]:
        page = await search.kinds(by, **{"limit": 10, **part})
        assert page.total == 10
        return [
            (each.pattern, each.sample.code, each.count, each.receivers) for each in page.groups
        ]

    [sample] = (await search.query(LetterFilter(channel="/news"), None, 1)).letters
    code = sample.code
    by_code = [("/**", code, 9, 8), ("/**", "user.other", 1, 1)]
    assert await kinds(GroupedBy.CODE) == by_code
    assert await kinds(GroupedBy.CODE, limit=1) == by_code[:1]
    assert await kinds(GroupedBy.CODE, start=1) == by_code[1:]
    orders = ("/orders/*/paid", code, 8, 8)
    assert await kinds(GroupedBy.PATTERN) == [
        orders,
        ("/orders/*/paid", "user.other", 1, 1),
        ("/news", code, 1, 1),
    ]
    first, *_ = (await search.kinds(GroupedBy.CODE, 10)).groups
    assert first.sample.reason == "the last one"
    assert (first.first, sum(first.hours), sum(first.days)) == (BASE // 10**6, 9, 9)
    following = [(await search.kinds(GroupedBy.CODE, n)).following for n in (1, 2)]
    assert following == [1, None]


async def test_letters_are_counted_by_channel(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "_AT_ONCE", 2)
    search = at.letters.search
    assert await search.by_channel() == {}
    await dead_letter(
        at,
        *(letter(n, channel="/orders", receiver=f"joe/{n}") for n in range(1, 4)),
        letter(4, channel="/orders", code="user.other"),
        letter(5, channel="/news"),
        letter(6, channel="/ret/joe/1/7"),
    )
    assert await search.by_channel() == {"/orders": 4, "/news": 1}
    await dead_letter(at, letter(7, channel="/news"), letter(8, channel="/prices"))
    await at.letters.purge(LetterFilter(channel="/orders"))
    assert await search.by_channel() == {"/news": 2, "/prices": 1}
    monkeypatch.setattr(grouping, "_MOST", 2)
    assert await search.by_channel() is None


async def test_a_group_of_more_causes_than_are_read_at_once_counts_all_of_them(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "_AT_ONCE", 3)
    await dead_letter(at, *(letter(n, channel=f"/orders/{n}") for n in range(1, 11)))
    [found] = (await at.letters.search.kinds(GroupedBy.PATTERN, 10)).groups
    assert (found.pattern, found.count, sum(found.hours)) == ("/orders/*", 10, 10)


async def test_deaths_are_counted_by_hour_and_by_day(at: StoreProcess) -> None:
    hour = 3_600 * 10**9
    now = BASE
    search = letter_search.LetterSearch(at.reader, at.store.keys, lambda: now)
    present = BASE - BASE % hour
    died = [present, present - 1, present - 23 * hour, present - 23 * hour - 1, now - 800 * hour]
    await dead_letter(at, *(letter(ns - BASE, of=0) for ns in died))
    ([group], _, _) = await search.groups(None, 1)
    assert (group.hours[-1], group.hours[-2], group.hours[0], sum(group.hours)) == (1, 1, 1, 3)
    assert (group.days[-1], group.days[-2], sum(group.days)) == (3, 1, 4)
    assert (len(group.hours), len(group.days), group.count) == (24, 30, 5)


async def test_a_query_fails_while_the_store_is_away(valkey: ValkeyServer) -> None:
    async with store_process(valkey) as at:
        valkey.kill()
        with pytest.raises(StoreUnavailable):
            await query(at)


# Removal


async def test_a_change_that_is_not_confirmed_raises_an_error(
    valkey: ValkeyServer,
) -> None:
    async with store_process(valkey) as at:
        line = letter_lines.write(letter(1))
        valkey.freeze()
        with pytest.raises(StoreUnavailable, match="may still take effect"):
            await at.store.run(scripts.forget(KEYS, ["joe/1"]), timeout_s=0.05)
        valkey.thaw()
        await at.answered()
        with pytest.raises(StoreUnavailable, match="ERR"):
            await at.store.run(
                ScriptCall(scripts.SETTLE, [KEYS.meta, KEYS.bodies, "x"], ["x", "y"])
            )
        valkey.kill()
        await until(lambda: not at.store.is_available)
        with pytest.raises(StoreUnavailable, match="unavailable"):
            await at.letters.import_(given_lines(line))


async def test_a_purge_removes_the_selected_letters_and_reports_its_progress(
    at: StoreProcess,
) -> None:
    await dead_letter(at, *VARIOUS)
    told: list[int] = []
    assert await at.letters.purge(LetterFilter(code="user.one"), told.append) == 3
    assert told == [3]
    assert await query(at) == [4, 3]
    assert await at.letters.search.count(LetterFilter(code="user.one")) == 0


async def test_a_purge_of_all_letters_leaves_no_redis_keys_behind(at: StoreProcess) -> None:
    await dead_letter(at, *VARIOUS)
    assert await at.letters.purge(ALL) == 5
    assert at.names() == {KEYS.meta, KEYS.handed}


async def test_a_purge_over_several_steps_removes_all_selected_letters(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_search, "_STEP", 10)
    await dead_letter(at, *(letter(n, receiver=f"joe/{n % 2 + 1}") for n in range(95)))
    assert await at.letters.purge(LetterFilter(receiver="joe/1")) == 48
    assert await at.letters.search.total() == 47


async def test_letters_beyond_the_age_limit_are_removed_and_counted(at: StoreProcess) -> None:
    await dead_letter(at, *(letter(n * SECOND - 100 * SECOND) for n in range(100)))
    assert await at.letters.retire(age_s=1000) == 0
    assert await at.letters.retire(age_s=51.5) == 50
    assert await query(at, limit=1) == [-SECOND]
    assert at.store.letter_quota.removed[Removal.AGE] == 50


# Quota


def limit(at: StoreProcess, **limits: int) -> LetterQuota:
    """From now on the store has room for so many letters."""
    at.store.letter_quota.limits = LetterLimits(**limits)
    return at.store.letter_quota


async def add_letters(at: StoreProcess, *letters: DeadLetter) -> list[int]:
    """Store these letters as far as there is room; the letters that are there then."""
    room = at.store.letter_quota
    await dead_letter(
        at, *(each for each in letters if room.take(each.channel, each.subject, each.size))
    )
    await at.letters.make_room()
    return (await query(at))[::-1]


def bulky(n: int, channel: str = "/a", receiver: str = "joe/1", *, size: int = 9000) -> DeadLetter:
    wire = orjson.dumps({"channel": channel, "data": "x" * size})
    return letter(n, channel=channel, receiver=receiver)._replace(wire=wire, size=len(wire))


async def test_the_oldest_letters_are_removed_when_there_are_too_many(at: StoreProcess) -> None:
    room = limit(at, count=3)
    await add_letters(at, *VARIOUS[:4])
    assert await add_letters(at, VARIOUS[4]) == [3, 4, 5]
    assert room.removed[Removal.COUNT] == 2
    assert room.all.count == 3


async def test_the_oldest_letters_are_removed_when_all_take_too_many_bytes(
    at: StoreProcess,
) -> None:
    room = limit(at, bytes=50_000)
    assert await add_letters(at, *(bulky(n) for n in range(1, 5))) == [1, 2, 3, 4]
    await add_letters(at, bulky(5))
    assert await add_letters(at, bulky(6)) == [3, 4, 5, 6]
    assert room.removed[Removal.BYTES] == 2
    assert room.all.bytes <= 50_000


async def test_a_channel_beyond_its_share_loses_its_own_oldest_letters(at: StoreProcess) -> None:
    room = limit(at, bytes=1_000_000, share=30_000)
    others = [bulky(1, "/b", "ann/1"), bulky(2, "/c", "bob/1")]
    flood = [bulky(n, "/a", f"u{n}/1") for n in range(3, 6)]
    assert await add_letters(at, *others, *flood) == [1, 2, 4, 5]
    assert room.removed[Removal.SHARE] == 1


async def test_a_subject_beyond_its_share_loses_its_own_oldest_letters(at: StoreProcess) -> None:
    limit(at, bytes=1_000_000, share=30_000)
    others = [bulky(1, "/a", "ann/1"), bulky(2, "/b", "bob/1")]
    flood = [bulky(n, f"/{n}", f"joe/{n}") for n in range(3, 6)]
    assert await add_letters(at, *others, *flood) == [1, 2, 4, 5]


async def test_the_letter_quota_refuses_letters_beyond_its_bytes(at: StoreProcess) -> None:
    room = limit(at, bytes=40_000)
    taken = [room.take("/a", "joe", 9000) for _ in range(10)]
    assert taken == [True] * 4 + [False] * 6


async def test_the_letter_quota_counts_letters_of_an_earlier_process(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as before:
        await dead_letter(before, *(bulky(n) for n in range(1, 8)))
    async with store_process(shared_valkey) as at:
        room = limit(at, bytes=50_000)
        # The usage is known when all letters have been read; those that come meanwhile count, too.
        assert room.all.count == 0
        assert await add_letters(at, bulky(8)) == [5, 6, 7, 8]
        assert room.all.count == 4


async def test_the_letter_quota_counts_imports_and_purges(at: StoreProcess) -> None:
    room = limit(at)
    await add_letters(at, *VARIOUS)
    lines = [letter_lines.write(each) for each in [*VARIOUS, letter(6), letter(7)]]
    await at.letters.import_(given_lines(*lines))
    await at.letters.make_room()
    assert room.all.count == 7
    assert await at.letters.purge(LetterFilter(code="user.one")) == 3
    assert room.all.count == 4
    await at.letters.purge(ALL)
    assert (room.all.count, room.all.bytes) == (0, 0)


async def test_the_letter_quota_is_counted_again_after_the_store_was_emptied(
    at: StoreProcess,
) -> None:
    room = limit(at, bytes=50_000)
    await add_letters(at, *(bulky(n) for n in range(1, 5)))
    at.server.ask("FLUSHALL")
    at.store.dead_letter([bulky(5)], None)
    await until(lambda: "emptied" in at.events)
    await until(lambda: not room.is_known)
    await at.letters.make_room()
    assert room.all.count == await at.letters.search.total()


async def test_large_letters_are_read_a_few_at_a_time(at: StoreProcess) -> None:
    await dead_letter(at, *(bulky(n, size=1_500_000) for n in range(1, 8)))
    found = await at.letters.search.oldest(ALL, 100)
    assert numbers(found) == [1, 2, 3]
    assert await query(at) == [7, 6, 5, 4, 3, 2, 1]


# Export and import


async def exported(at: StoreProcess, which: LetterFilter = ALL) -> list[bytes]:
    return [line async for line in at.letters.export(which)]


async def given_lines(*lines: bytes) -> AsyncIterator[bytes]:
    for line in lines:
        yield line


async def test_exported_letters_can_be_imported_unchanged(at: StoreProcess) -> None:
    await dead_letter(at, *VARIOUS)
    before = at.hash(KEYS.dead)
    lines = await exported(at)
    assert [orjson.loads(line)["id"] for line in lines] == [each.id for each in VARIOUS]
    assert await at.letters.purge(ALL) == 5
    assert await at.letters.import_(given_lines(*lines)) == Import(5, 0, 0, [])
    assert at.hash(KEYS.dead) == before
    assert await query(at, LetterFilter(code="user.two")) == [4, 3]


async def test_an_import_skips_letters_that_exist_already(at: StoreProcess) -> None:
    await dead_letter(at, *VARIOUS)
    lines = await exported(at)
    assert await at.letters.import_(given_lines(*lines, lines[0])) == Import(0, 6, 0, [])


async def test_an_import_refuses_only_the_lines_that_are_no_letters(at: StoreProcess) -> None:
    good = letter_lines.write(letter(1))
    imported = await at.letters.import_(given_lines(b"nonsense", good, b"[]"))
    assert imported == Import(1, 0, 2, [Refusal(1, "not JSON"), Refusal(3, "not a JSON object")])


async def test_an_import_reports_only_its_first_twenty_refusals(at: StoreProcess) -> None:
    imported = await at.letters.import_(given_lines(*[b"nonsense"] * 100))
    assert (imported.refused, len(imported.refusals)) == (100, 20)


async def test_an_import_of_many_lines_takes_all_of_them(at: StoreProcess) -> None:
    lines = [letter_lines.write(letter(n)) for n in range(250)]
    assert await at.letters.import_(given_lines(*lines)) == Import(250, 0, 0, [])


async def test_the_newest_id_after_an_import_is_that_of_the_imported_letter(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    await at.letters.import_(given_lines(letter_lines.write(letter(999))))
    async with store_process(shared_valkey, is_open=False) as other:
        assert await other.store.open() == BASE + 999


def with_fields(**fields: Any) -> bytes:
    return orjson.dumps({**orjson.loads(letter_lines.write(letter(1))), **fields})


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"id": "17"}, "id: .*pattern"),
        ({"id": str(NOW + 1)}, "in the future"),
        ({"id": None}, "id: Field required"),
        ({"message": "x" * 19}, "message: .*pattern"),
        ({"channel": ""}, "channel: .*at least 1 character"),
        ({"channel": "/other"}, "event is of another channel"),
        ({"channel": "/" + "x" * 1024}, "channel: .*at most 1024"),
        ({"receiver": 5}, "receiver: .*string"),
        ({"code": "x" * 201}, "code: .*at most 200"),
        ({"event": None}, "event: Field required"),
        ({"event": {"channel": "/orders/new"}}, "event has no data"),
        ({"event": []}, "event: .*dictionary"),
        ({"priority": 10}, "priority: .*less than or equal to 9"),
        ({"priority": True}, "priority: .*integer"),
        ({"generation": -1}, "generation: .*greater than or equal to 0"),
        ({"history": [5]}, "history.0: not a JSON object"),
        ({"history": [{"n": "1"}]}, "history.0.n: .*integer"),
        ({"state": "lost"}, "state: .*'new' or 'replayed'"),
        ({"job": "a b"}, "job: .*pattern"),
        ({"properties": []}, "properties: .*dictionary"),
        ({"expiration": {}}, "expiration.lifeTime: Field required"),
        ({"expiration": {"lifeTime": -1}}, "expiration.lifeTime: .*greater than or equal to 0"),
    ],
)
def test_a_line_with_an_unusable_field_is_refused_with_the_reason(
    fields: dict[str, Any], why: str
) -> None:
    with pytest.raises(LineUnfit, match=why):
        letter_lines.read(with_fields(**fields), NOW)


def test_derived_fields_of_a_line_are_computed_again() -> None:
    lies = {"fingerprint": "f", "key": "k", "subject": "s", "size": 1, "reason": "r" * 5000}
    found = letter_lines.read(with_fields(**lies), NOW)
    assert (found.key, found.subject, found.size) == ("joe/1", "joe", len(letter(1).wire))
    assert len(found.reason) == MAX_REASON
    assert found.fingerprint == letter(1).fingerprint


def test_a_line_has_the_reason_only_once() -> None:
    line = orjson.loads(letter_lines.write(letter(1)._replace(text="no room")))
    assert "reason" in line
    assert "text" not in line


def test_a_line_with_only_the_required_fields_is_accepted() -> None:
    needed = ("id", "message", "channel", "receiver", "code", "event")
    whole = orjson.loads(letter_lines.write(letter(1)))
    found = letter_lines.read(orjson.dumps({name: whole[name] for name in needed}), NOW)
    assert (found.wire, found.state, found.attempts) == (letter(1).wire, LetterState.NEW, ())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
names = st.sampled_from(sorted(orjson.loads(letter_lines.write(letter(1)))))


@pytest.mark.slow
@given(st.dictionaries(names, json_values, max_size=4))
def test_every_line_is_read_as_a_letter_or_refused(fields: dict[str, Any]) -> None:
    try:
        found = letter_lines.read(with_fields(**fields), NOW)
    except LineUnfit:
        return
    assert letter_records.unpack_letter(letter_records.pack_letter(found, {})) == found
    assert letter_lines.read(letter_lines.write(found), NOW) == found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(json_values)
def test_reading_a_line_preserves_the_bytes_of_its_event(data: object) -> None:
    event = orjson.dumps({"channel": "/orders/new", "data": data})
    line = letter_lines.write(letter(1))
    changed = orjson.loads(line) | {"event": orjson.loads(event)}
    assert letter_lines.read(orjson.dumps(changed), NOW).wire == event


# The audit


async def test_the_audit_lists_changes_from_the_latest_on(at: StoreProcess) -> None:
    audit = at.audit
    for n in range(5):
        audit.note("operator/ann", "dead.purge", f"target {n}", detail={"n": n})
    audit.note("operator", "session.end", "joe/1", outcome="user.notConnected")
    await at.answered()
    latest, cursor = await audit.read(None, 4)
    assert [(entry.action, entry.target) for entry in latest[:2]] == [
        ("session.end", "joe/1"),
        ("dead.purge", "target 4"),
    ]
    assert latest[0].outcome == "user.notConnected"
    assert (latest[1].who, latest[1].outcome, latest[1].detail) == ("operator/ann", "ok", {"n": 4})
    rest, end = await audit.read(cursor, 4)
    assert [entry.detail["n"] for entry in rest] == [1, 0]
    assert end is None


async def test_a_full_store_takes_entries_of_the_audit(valkey: ValkeyServer) -> None:
    async with store_process(valkey) as at:
        valkey.set(maxmemory="1")
        at.audit.note("operator", "session.end", "joe/1")
        await at.answered()
        entries, _ = await at.audit.read(None, 1)
    assert [each.action for each in entries] == ["session.end"]


async def test_a_letter_stays_when_its_session_is_forgotten(at: StoreProcess) -> None:
    at.store.save(session("joe/1"))
    await dead_letter(at, letter(1))
    at.store.forget("joe/1", [])
    await at.answered()
    assert await query(at) == [1]
