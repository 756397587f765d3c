"""Stories, replayed by clients whose sessions are in another process than their connections."""

from collections.abc import Iterator

import pytest

from tests.conversations.runner.theatre import Play, Theatre
from tests.conversations.test_conversations import PLAYS

# A worker takes the word of another one that a socket was there before, if it is a second late.
LATER = "A newcomer cannot claim a session that has connected"


def is_of_clients_alone(play: Play) -> bool:
    """Whether nobody asks the administration, or stops servers: there are two of each here."""
    return not (play.story.ends_the_server or "/admin" in repr(play.story))


CLIENTS_PLAYS = [
    play
    for play in PLAYS
    if play.fast_lane and is_of_clients_alone(play) and play.story.title != LATER
]


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
