"""The man pages hold every command with all its options."""

import re
import shutil
import subprocess
from typing import Any

import pytest

from holdfast.cli.failures import Exit
from holdfast.cli.main import COMMANDS, load
from holdfast.cli.manual import pages

PAGES = dict(pages("1.2.3"))


def shown(text: str) -> str:
    """A page roughly as its reader sees it."""
    return text.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def test_each_command_has_a_manual_page_and_one_page_lists_all() -> None:
    assert [*PAGES] == ["holdfast", *(f"holdfast-{name}" for name in COMMANDS)]
    overview = shown(PAGES["holdfast"])
    for name, purpose in COMMANDS.items():
        assert f"holdfast-{name}(1)" in overview
        assert purpose in overview


@pytest.mark.parametrize("name", COMMANDS)
def test_a_manual_page_has_all_options_and_commands_with_their_help(name: str) -> None:
    page, command = shown(PAGES[f"holdfast-{name}"]), load(name)
    parts: dict[str, Any] = getattr(command, "commands", {})
    assert re.findall(r"^\.SS holdfast \S+ (\S+)$", page, re.MULTILINE) == [*parts]
    for each in parts.values() or [command]:
        for option in each.params:
            words = (*option.opts, *option.secondary_opts)
            assert all(word in page for word in words if word.startswith("-"))
    assert all(f"\\fB{exit.value}\\fR" in page for exit in Exit)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_manual_page_shows_arguments_without_python_types(name: str) -> None:
    assert not re.findall(r"^\\fB\w+ <.*", PAGES[f"holdfast-{name}"], re.MULTILINE)


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_groff_formats_the_pages_without_warnings() -> None:
    words = ["groff", "-man", "-Tutf8", "-ww", "-Wbreak", "-z"]
    done = subprocess.run(words, input="".join(PAGES.values()), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
