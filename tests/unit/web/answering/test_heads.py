"""Heads of responses, made once a second."""

import re

import pytest

from holdfast.web.answering import heads
from holdfast.web.answering.heads import Heads

PATTERN = re.compile(rb"HTTP/1\.1 (\d{3}) ([A-Z][A-Za-z ]+)\r\n(?:[A-Za-z-]+: [^\r\n]+\r\n)*\Z")


def test_a_head_ends_where_the_length_is_to_be_written() -> None:
    assert Heads().ok.startswith(b"HTTP/1.1 200 OK\r\n")
    assert Heads().ok.endswith(b"\r\nContent-Length: ")


@pytest.mark.parametrize("status", [200, 400, 403, 408, 409, 413, 415, 503])
def test_every_status_has_its_phrase_and_all_headers(status: int) -> None:
    head = Heads().build(status, {"Set-Cookie": "a=b"})
    found = PATTERN.match(head.removesuffix(b"Content-Length: "))
    assert found
    assert int(found[1]) == status
    for name in (b"Content-Type", b"Cache-Control", b"X-Content-Type-Options", b"Vary", b"Date"):
        assert head.count(b"\r\n" + name + b": ") == 1
    assert b"\r\nSet-Cookie: a=b\r\n" in head


def test_the_date_is_that_of_the_last_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Heads()
    monkeypatch.setattr(heads, "formatdate", lambda *, usegmt: f"then, {usegmt}")
    assert b"then" not in kept.ok
    kept.refresh()
    assert b"\r\nDate: then, True\r\n" in kept.ok
    assert b"\r\nDate: then, True\r\n" in kept.build(400, {})


def test_some_connections_may_end_with_their_next_response(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Heads(60)
    last = kept.of_last()
    assert (last.are_last, kept.are_last) == (True, False)
    assert b"\r\nConnection: close\r\n" in last.ok
    assert b"Connection" not in kept.ok
    assert kept.of_last() is last
    assert last.ok.replace(b"Connection: close\r\n", b"") == kept.ok
    monkeypatch.setattr(heads, "formatdate", lambda *, usegmt: f"then, {usegmt}")
    kept.refresh()
    assert b"\r\nDate: then, True\r\n" in last.ok
