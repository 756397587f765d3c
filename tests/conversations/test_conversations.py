"""Every story, replayed over each of its transports; long-polling through both front ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conversations.runner.reading import read_chapter
from tests.conversations.runner.theatre import Play, Theatre

STORIES = Path(__file__).with_name("stories")
FRONT_ENDS = {"long-polling": (True, False)}


def plays() -> Iterator[Play]:
    for chapter in sorted(STORIES.glob("*.story")):
        for story in read_chapter(chapter):
            for transport in story.transports:
                for fast_lane in FRONT_ENDS.get(transport, (True,)):
                    yield Play(story, transport, fast_lane)


# In the order in which they are played, so that none waits for more than its own.
PLAYS = sorted(plays(), key=lambda play: play.programme)


@pytest.mark.parametrize("play", PLAYS, ids=str)
def test_story(play: Play, theatre: Theatre) -> None:
    complaint = theatre.watch(play)
    if complaint:
        pytest.fail(complaint, pytrace=False)
