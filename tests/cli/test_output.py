"""Numbers in the output of commands."""

import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from holdfast.cli import output
from holdfast.cli.output import print_table, progress, speed, spinner, telling
from holdfast.units import counted


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 messages"),
        (1, "1 message"),
        (999, "999 messages"),
        (1000, "1,000 messages"),
        (1234567, "1,234,567 messages"),
    ],
)
def test_numbers_of_things_have_separators_for_thousands(count: int, text: str) -> None:
    assert counted(count, "message") == speed(count, 0.0) == text


def test_a_plural_may_be_given() -> None:
    assert counted(2000, "entry is", "entries are") == "2,000 entries are"


def test_a_speed_has_the_time_and_the_rate() -> None:
    assert speed(3000, 2.0) == "3,000 messages in 2.00 s, 1,500 per second"


HEAD = ("CHANNEL", "STATE", "NEXT")
LONG = "/orders/" + "very-" * 20 + "long"
ADVICE = "start a receiver; without one these messages wait until they expire"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A terminal with 60 columns."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    output.console.cache_clear()
    yield
    output.console.cache_clear()


@pytest.mark.usefixtures("narrow")
def test_a_long_name_wraps_in_the_table_of_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(HEAD, [(LONG, "ALIVE", ADVICE), ("/b", "DEAD", "")])
    printed = capsys.readouterr().out
    assert "\t" not in printed
    lines = printed.splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert LONG in "".join(line[:20].strip() for line in lines)
    assert "start a receiver; without one" in printed
    assert ADVICE not in printed


@pytest.mark.usefixtures("narrow")
def test_advice_that_is_wider_than_the_terminal_wraps(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HEAD, [("/a", "ALIVE", ADVICE)], wraps=True)
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(line[16:].strip() for line in lines[2:]) == ADVICE


def lines_of(
    work: AbstractContextManager[object], monkeypatch: pytest.MonkeyPatch, count: int = 2
) -> list[str]:
    """The first lines that are printed while this work goes on."""
    told: list[str] = []
    monkeypatch.setattr(output, "_BETWEEN_LINES_S", 0.001)
    monkeypatch.setattr(output, "note", told.append)
    with work:
        while len(told) < count:
            time.sleep(0.001)
    return told[:count]


def test_work_of_unknown_length_says_without_a_terminal_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for line in lines_of(spinner("Counting"), monkeypatch):
        assert re.fullmatch(r"Counting, for \d+ s", line)


def test_progress_is_told_in_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    bar = progress()
    with bar as shown:
        shown.add_task("Removing", total=5000, completed=2000)
        shown.add_task("Events", total=None, completed=7)
        stage = telling(lambda: output._stages(shown))
        assert lines_of(stage, monkeypatch, 1) == ["Removing, 2000 of 5000; Events, 7"]


def test_work_without_an_end_tells_nothing_without_a_terminal() -> None:
    threads = threading.active_count()
    with progress(has_end=False):
        assert threading.active_count() == threads
    with progress():
        assert threading.active_count() == threads + 1
    assert threading.active_count() == threads


def test_what_a_command_prints_into_a_pipe_goes_there_while_a_terminal_shows_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress():
        sys.stdout.write("an id\n")
    assert capsys.readouterr().out == "an id\n"
