"""Logs are lines of JSON, or of text on a terminal, in which nobody can forge a line."""

import io
import json
import logging
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.logs import JsonLines, TextLines, configure

JSON = JsonLines()
TERMINAL = TextLines(has_colours=False)


def formatted(
    message: str,
    *args: object,
    fault: BaseException | None = None,
    level: int = logging.INFO,
    formatter: logging.Formatter = JSON,
) -> str:
    exc_info = None if fault is None else (type(fault), fault, None)
    record = logging.LogRecord("holdfast.web", level, __file__, 1, message, args, exc_info)
    return formatter.format(record)


def test_a_log_line_has_time_level_logger_and_message() -> None:
    line: dict[str, Any] = json.loads(formatted("session %d ended", 7))
    assert list(line) == ["time", "level", "logger", "message"]
    assert (line["level"], line["logger"], line["message"]) == (
        "info",
        "holdfast.web",
        "session 7 ended",
    )
    assert line["time"].endswith("+00:00")


def test_a_line_of_a_host_among_others_has_its_name() -> None:
    line = json.loads(formatted("it serves", formatter=JsonLines(3, "a.example")))
    assert (line["host"], line["shard"]) == ("a.example", 3)
    assert "shard" not in json.loads(formatted("it looks", formatter=JsonLines(host="a.example")))


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


def test_a_terminal_shows_the_time_the_level_and_the_message() -> None:
    line = formatted("session %d ended", 7, formatter=TERMINAL)
    assert re.fullmatch(r"\d\d:\d\d:\d\d info +session 7 ended", line)


@pytest.mark.parametrize("level", [logging.WARNING, logging.ERROR])
def test_warnings_and_errors_stand_out_on_a_terminal(level: int) -> None:
    coloured = TextLines(has_colours=True)
    assert "\x1b[" in formatted("x", level=level, formatter=coloured)
    assert "\x1b[" not in formatted("x", formatter=coloured)
    assert "\x1b[" not in formatted("x", level=level, formatter=TERMINAL)


@pytest.mark.parametrize("forged", ["\n12:00:00 error", "\r\n", "\x1b[31m", "\u202e", "\udcff"])
def test_what_a_terminal_would_obey_is_escaped(forged: str) -> None:
    line = formatted("refused %s", forged, formatter=TERMINAL)
    assert line.isprintable()


def test_the_traceback_of_a_fault_is_indented_below_its_line_on_a_terminal() -> None:
    first, *trace = formatted("failed", fault=ValueError("a\nb\x1b"), formatter=TERMINAL).split(
        "\n"
    )
    assert first.endswith(" failed")
    assert all(line.startswith("    ") and line.isprintable() for line in trace)
    assert trace[-2:] == ["    ValueError: a", "    b\\x1b"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_logs_are_json_unless_a_terminal_shows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert logged(monkeypatch, io.StringIO()).startswith("{")
    shown = logged(monkeypatch, Terminal())
    assert not shown.startswith("{")
    assert shown.endswith(" loud\n")


def test_lines_of_the_configured_level_and_above_go_to_stderr(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = logged(monkeypatch, io.StringIO()).splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["loud"]


def logged(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> str:
    """What reaches this stderr of an info and a warning at the level of warnings."""
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    monkeypatch.setattr(sys, "stderr", stream)
    try:
        configure("warning")
        logging.getLogger("holdfast.web").info("quiet")
        logging.getLogger("holdfast.web").warning("loud")
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]
    return stream.getvalue()
