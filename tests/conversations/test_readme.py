"""The table in the README names the stories that pin each behaviour, and titles are unique."""

import re
from collections import defaultdict
from pathlib import Path

from tests.conversations.runner.reading import read_chapter

HERE = Path(__file__).parent
BEHAVIOURS = [str(number) for number in range(1, 61)]
ROW = re.compile(r"\| (?P<number>\d+) \| [^|]+ \| (?P<stories>.*) \|")


def test_the_table_names_the_stories_that_pin_each_behaviour() -> None:
    told: dict[str, set[str]] = defaultdict(set)
    for chapter in (HERE / "stories").glob("*.story"):
        for story in read_chapter(chapter):
            for number in story.pins:
                told[number].add(f"{chapter.stem}: {story.title}")
    written = {
        row["number"]: set(row["stories"].split("<br>"))
        for row in ROW.finditer((HERE / "README.md").read_text("utf-8"))
    }
    assert list(written) == BEHAVIOURS
    assert written == dict(told)


def test_titles_are_unique() -> None:
    for chapter in (HERE / "stories").glob("*.story"):
        titles = [story.title for story in read_chapter(chapter)]
        assert len(titles) == len(set(titles)), chapter.name
