"""Logs are lines of JSON in which nobody can forge a line."""

import io
import json
import logging
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.logs import JsonLines, configure


def formatted(message: str, *args: object, fault: BaseException | None = None) -> str:
    exc_info = None if fault is None else (type(fault), fault, None)
    record = logging.LogRecord("holdfast.web", logging.INFO, __file__, 1, message, args, exc_info)
    return JsonLines().format(record)


def test_a_log_line_has_time_level_logger_and_message() -> None:
    line: dict[str, Any] = json.loads(formatted("session %d ended", 7))
    assert list(line) == ["time", "level", "logger", "message"]
    assert (line["level"], line["logger"], line["message"]) == (
        "info",
        "holdfast.web",
        "session 7 ended",
    )
    assert line["time"].endswith("+00:00")


@pytest.mark.slow
@given(st.text(st.characters(exclude_categories=())))
def test_any_text_is_logged_as_one_line_without_control_characters(text: str) -> None:
    line = formatted("%s", text)
    assert len(line.splitlines()) == 1 or not any(end in line for end in "\r\n")
    assert not any(ord(character) < 0x20 for character in line)


@pytest.mark.parametrize("forged", ["\n{}", "\r\n", "\x1b[31m", '"}\n{"level":"error"', "\udcff"])
def test_line_ends_and_escape_sequences_are_escaped(forged: str) -> None:
    line = formatted("refused %s", forged)
    assert "\n" not in line
    assert "\x1b" not in line
    assert json.loads(line)["level"] == "info"


def test_a_fault_is_logged_with_its_exception_in_the_same_line() -> None:
    line = formatted("failed", fault=ValueError("a\nb"))
    assert "\n" not in line
    assert "ValueError: a\nb" in json.loads(line)["exception"]


def test_lines_of_the_configured_level_and_above_go_to_stderr(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, root = io.StringIO(), logging.getLogger()
    before = (root.level, root.handlers[:])
    monkeypatch.setattr(sys, "stderr", stream)
    try:
        configure("warning")
        logging.getLogger("holdfast.web").info("quiet")
        logging.getLogger("holdfast.web").warning("loud")
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["loud"]
