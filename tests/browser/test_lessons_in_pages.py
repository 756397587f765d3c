"""What tutorials show in a browser happens there."""

from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.lessons import LESSONS_IN_A_BROWSER, follow


class Visitor:
    """Follows what a page says with a browser."""

    def __init__(self, profile: BrowserContext) -> None:
        self._page: Page = profile.new_page()

    def open(self, url: str) -> None:
        self._page.goto(url)

    def fill(self, label: str, text: str) -> None:
        self._page.get_by_label(label, exact=True).fill(text)

    def click(self, name: str) -> None:
        self._page.get_by_role("button", name=name, exact=True).click()

    def sees(self, text: str) -> None:
        expect(self._page.get_by_text(text, exact=True).first).to_be_visible()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", LESSONS_IN_A_BROWSER, ids=lambda page: page.stem)
def test_what_a_lesson_shows_in_a_browser_happens(
    page: Path, profile: BrowserContext, tmp_path: Path
) -> None:
    follow(page, tmp_path, Visitor(profile))
