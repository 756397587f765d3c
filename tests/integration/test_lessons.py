"""The commands and programs of pages do what the pages show, in their order."""

from pathlib import Path

import pytest

from tests.lessons import follow, steps, untold
from tests.pages import ROOT

DOCS = ROOT / "docs"
LESSONS = [
    ROOT / "README.md",
    DOCS / "tutorials" / "order-desk.md",
    DOCS / "tutorials" / "work-queue.md",
    DOCS / "tutorials" / "login.md",
    DOCS / "how-to" / "you-asked.md",
]


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.stem)
def test_every_block_of_a_lesson_says_what_is_done_with_it(page: Path) -> None:
    assert steps(page)
    assert untold(page) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.stem)
def test_what_a_lesson_says_happens(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)
