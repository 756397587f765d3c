"""The tables in the README say which story pins which behaviour; here they are held to it."""

import re
from collections import defaultdict
from pathlib import Path

from tests.conversations.runner.reading import read_chapter

HERE = Path(__file__).parent
BEHAVIOURS = [str(number) for number in range(1, 61)]
SCENARIOS = [f"S{number:02}" for number in (*range(1, 25), 76, 77)]
ROW = re.compile(r"\| (?P<number>S?\d+) \| [^|]+ \| (?P<stories>.*) \|")
# What is not told, and why.
REASON = "not told: "


def test_the_tables_name_the_stories_that_pin_each_behaviour() -> None:
    told: dict[str, set[str]] = defaultdict(set)
    for chapter in (HERE / "stories").glob("*.story"):
        for story in read_chapter(chapter):
            for number in story.pins:
                told[number].add(f"{chapter.stem}: {story.title}")
    written = {
        row["number"]: row["stories"].split("<br>")
        for row in ROW.finditer((HERE / "README.md").read_text("utf-8"))
    }
    assert list(written) == BEHAVIOURS + SCENARIOS
    stories = {
        number: {entry for entry in entries if not entry.startswith(REASON)}
        for number, entries in written.items()
    }
    assert {number: entries for number, entries in stories.items() if entries} == dict(told)


def test_titles_are_unique() -> None:
    for chapter in (HERE / "stories").glob("*.story"):
        titles = [story.title for story in read_chapter(chapter)]
        assert len(titles) == len(set(titles)), chapter.name
