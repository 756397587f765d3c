"""The commands and programs of pages do what the pages show, in their order."""

from pathlib import Path

import pytest

from tests.lessons import DOCS, LESSONS, LESSONS_IN_A_BROWSER, follow, steps, untold

# Tests of their own kill what these pages start: test_frameworks.py and test_answers.py.
OTHERS = {DOCS / "tutorials" / "frameworks.md", DOCS / "tutorials" / "answers.md"}


def test_every_tutorial_is_followed() -> None:
    assert {*(DOCS / "tutorials").glob("*.md")} <= {*LESSONS, *LESSONS_IN_A_BROWSER} | OTHERS


@pytest.mark.parametrize("page", [*LESSONS, *LESSONS_IN_A_BROWSER], ids=lambda page: page.stem)
def test_every_block_of_a_lesson_says_what_is_done_with_it(page: Path) -> None:
    assert steps(page)
    assert untold(page) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.stem)
def test_what_a_lesson_says_happens(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)
