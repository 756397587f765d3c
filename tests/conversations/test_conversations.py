"""Every story, replayed over each of its transports; long-polling through both doors."""

import json
from pathlib import Path

import pytest

from tests.conversations.runner.reading import read_chapter
from tests.conversations.runner.replay import replay
from tests.conversations.runner.stories import Story
from tests.serving import Servers

STORIES = Path(__file__).with_name("stories")
BOTH_DOORS = {"long-polling": (True, False)}


def replays() -> list[tuple[Story, str, bool]]:
    """Stories with the same settings stand together, whatever their chapter."""
    stories = [
        story for chapter in sorted(STORIES.glob("*.story")) for story in read_chapter(chapter)
    ]
    found = [
        (story, transport, fast_lane)
        for story in stories
        for transport in story.transports
        for fast_lane in BOTH_DOORS.get(transport, (True,))
    ]
    return sorted(found, key=lambda replay: json.dumps([replay[0].settings, replay[2]]))


def name(replay: tuple[Story, str, bool]) -> str:
    story, transport, fast_lane = replay
    door = "" if fast_lane else ", ordinary door"
    return f"{story.chapter.stem}: {story.title} ({transport}{door})"


REPLAYS = replays()


@pytest.fixture
def server_url(servers: Servers, request: pytest.FixtureRequest) -> str:
    story, _, fast_lane = request.getfixturevalue("told")
    settings = story.settings if fast_lane else {**story.settings, "fast_lane": False}
    return servers.with_settings(settings).url


@pytest.mark.parametrize("told", REPLAYS, ids=map(name, REPLAYS))
async def test_story(told: tuple[Story, str, bool], server_url: str) -> None:
    story, transport, _ = told
    await replay(story, transport, server_url)
