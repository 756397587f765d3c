"""Stories, replayed by clients whose sessions are in another process than their connections."""

from collections.abc import Iterable, Iterator

import pytest

from tests.conversations.runner.theatre import Play, Theatre
from tests.conversations.test_conversations import PLAYS
from tests.effort import TIMES

# A worker takes the word of another one that a socket was there before, if it is a second late.
LATER = "A newcomer cannot claim a session that has connected"


def is_of_clients_alone(play: Play) -> bool:
    """Whether nobody asks the administration, or stops servers: there are two of each here."""
    return not (play.story.ends_the_server or "/admin" in repr(play.story))


def over_one_transport(plays: Iterable[Play]) -> list[Play]:
    """Each story over one of its transports, over each of which it is played with one server."""
    of_story: dict[tuple[str, str], list[Play]] = {}
    for play in plays:
        of_story.setdefault((play.story.chapter.stem, play.story.title), []).append(play)
    return [plays[number % len(plays)] for number, plays in enumerate(of_story.values())]


ALL_PLAYS = [
    play
    for play in PLAYS
    if play.fast_lane and is_of_clients_alone(play) and play.story.title != LATER
]
CLIENTS_PLAYS = over_one_transport(ALL_PLAYS) if TIMES == 1 else ALL_PLAYS


@pytest.fixture(scope="session")
def abroad(request: pytest.FixtureRequest) -> Iterator[Theatre]:
    chosen = [
        item.callspec.params["play"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and "abroad" in item.fixturenames
    ]
    with Theatre([play for play in chosen if isinstance(play, Play)], "abroad") as theatre:
        yield theatre


@pytest.mark.slow
@pytest.mark.parametrize("play", CLIENTS_PLAYS, ids=str)
def test_story(play: Play, abroad: Theatre) -> None:
    complaint = abroad.watch(play)
    if complaint:
        pytest.fail(complaint, pytrace=False)
