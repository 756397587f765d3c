"""How programs are started again, with the modules that they had."""

import sys

import pytest

from holdfast.supervisor.processes import command

WORDS = ["serve", "--port", "0"]


@pytest.mark.parametrize(
    "before",
    [
        ["-m", "holdfast"],
        ["-S", "-P", "-m", "holdfast"],
        ["/usr/local/bin/holdfast"],
        ["-X", "utf8", "/usr/local/bin/holdfast"],
    ],
)
def test_a_program_is_started_as_it_was_with_all_options_of_python(
    monkeypatch: pytest.MonkeyPatch, before: list[str]
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", *before, *WORDS])
    assert command(WORDS) == [sys.executable, *before, *WORDS]


def test_a_program_that_another_has_forked_is_started_by_its_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "tests.forking"])
    assert command(WORDS) == [sys.executable, "-P", "-m", "holdfast", *WORDS]
