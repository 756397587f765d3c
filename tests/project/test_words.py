"""What users read stays short enough to be read."""

from docs import words
from docs.words import Page


def test_all_pages_together_stay_within_their_limit() -> None:
    assert words.total() <= words.MOST, "python -m docs.words"


def test_no_page_is_too_long_and_no_cell_of_a_table() -> None:
    assert words.long_pages() == {}
    assert words.long_cells() == []


def test_words_count_as_readers_see_them() -> None:
    page = Page("page.md", "# A title\n\nRead [this page](a.md), `then` that.\n")
    assert page.words == 8
    assert next(each.path for each in words.pages()) == "README.md"
    assert not any("building" in each.path for each in words.pages())
    assert any("<!-- made by" in (words.ROOT / each.path).read_text() for each in words.pages())
    assert not any("<!--" in each.text for each in words.pages())


def test_short_words_in_short_sentences_read_more_easily() -> None:
    easy = Page("easy.md", "The cat sat. The dog ran.\n\n* It is red.\n")
    hard = Page("hard.md", "Configuration necessitates considerable administrative deliberation.")
    plain = Page("plain.md", "A message that nobody can process is kept, with the reason, for you.")
    assert easy.ease > plain.ease > 50 > hard.ease
    assert Page("code.md", "```sh\nholdfast serve\n```\n").ease == 100


def test_cells_are_those_of_tables_and_links_count_as_their_words() -> None:
    page = Page("page.md", "a | b\n\n| one | two [three](c.md#d) \\| four |\n")
    assert [each.strip() for each in page.cells() if each] == ["one", "two three \\| four"]
