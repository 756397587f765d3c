"""The rows of hosts: packed, read, and ignored if they are damaged."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.hosts.rows import HostRow, HostRows, HostState, pack

ROW = HostRow("n1", 7, HostState.DRAINING, "v", "d", "1.0", "https://a.example", (2, 5))


def test_a_row_is_read_as_it_was_packed() -> None:
    assert HostRows(["a"]).read({b"a": pack(ROW)}) == {"a": ROW}


def test_a_row_of_a_later_release_has_fields_that_are_ignored() -> None:
    data = pack(ROW)[:-1] + b',"later":{"x":[1]}}'
    assert HostRows(["a"]).read({b"a": data}) == {"a": ROW}


def test_a_row_of_an_earlier_release_lacks_fields() -> None:
    assert HostRows(["a"]).read({b"a": b'{"nonce":"n1","n":7}'}) == {"a": HostRow("n1", 7)}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"7",
        b"\xff",
        b'{"n":7}',
        b'{"nonce":"n1"}',
        b'{"nonce":"n1","n":true}',
        b'{"nonce":"n1","n":"7"}',
        b'{"nonce":1,"n":7}',
        b'{"nonce":"n1","n":7,"url":null}',
        b'{"nonce":"n1","n":7,"state":"dancing"}',
        b'{"nonce":"n1","n":7,"state":[]}',
        b'{"nonce":"n1","n":7,"refuses":"25"}',
        b'{"nonce":"n1","n":7,"refuses":[2,"5"]}',
        pack(ROW) + b" " * 4096,
    ],
)
def test_a_damaged_row_is_ignored_and_said_once(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    rows = HostRows(["a", "b"])
    for _ in range(3):
        assert rows.read({b"a": data, b"b": pack(ROW)}) == {"b": ROW}
    assert caplog.messages == ["the row of host a in the store is damaged, and ignored"]
    rows.read({b"a": pack(ROW)})
    rows.read({b"a": data})
    assert len(caplog.messages) == 2


def test_rows_of_hosts_that_are_not_in_the_list_are_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert HostRows(["a"]).read({b"b": pack(ROW), b"\xff": b"", b"c": b"{"}) == {}
    assert caplog.messages == []


def test_a_row_that_nobody_would_read_is_not_written() -> None:
    with pytest.raises(ValueError, match="of at most 4096"):
        pack(replace(ROW, url="x" * 4096))


@pytest.mark.slow
@given(st.binary(max_size=60))
def test_any_bytes_are_a_row_or_none(data: bytes) -> None:
    assert len(HostRows(["a"]).read({b"a": data})) <= 1
