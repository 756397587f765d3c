"""Docstrings and comments are written as an engineer would say it."""

import pytest

from docs.wording import FOLDERS, found_in, lines_of, phrases_in, rate_of

pytestmark = pytest.mark.untraced

# In a thousand lines. Other servers in Python have none to 0.2; there were 4.4.
MOST = 0.2

LARGE = ["app/bayeux", "app/delivery", "app/store", "app/web"]
TESTS = ["tests/unit/bayeux", "tests/unit/delivery"]


@pytest.mark.parametrize("folder", LARGE + TESTS)
def test_hardly_any_phrase_in_a_large_package_sounds_translated(folder: str) -> None:
    assert rate_of(folder) <= MOST, found_in(folder)


def test_hardly_any_phrase_in_all_packages_sounds_translated() -> None:
    found = [each for folder in FOLDERS for each in found_in(folder)]
    assert rate_of(*FOLDERS) <= MOST / 2, found


def test_all_folders_of_the_server_the_extensions_and_the_pipeline_are_read() -> None:
    assert {"app/bayeux", "app/delivery", "app/store", "extensions", "pipeline"} <= {*FOLDERS}
    assert lines_of("app/delivery") > 5_000


def test_phrases_are_found_in_docstrings_and_comments_over_line_breaks() -> None:
    source = '''"""The client, but for
its queue."""


class Queue:
    """Starts anew."""

    # The mark is that
    # of the batch.
    size = 5
    limit = 6  # nobody
'''
    assert [*phrases_in(source)] == [
        (1, "but for"),
        (6, "anew"),
        (8, "that of"),
        (11, "nobody"),
    ]


def test_code_names_and_texts_may_have_any_words() -> None:
    source = 'def anew(text: str = "nobody") -> str:\n    """Set `anew`."""\n    return text\n'
    assert [*phrases_in(source)] == []
