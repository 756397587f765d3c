"""False stories: each must fail at its false line."""

from collections.abc import Iterator

import pytest

from tests.conversations.runner.reading import read_stories
from tests.conversations.runner.theatre import Play, Theatre

LIES = """\
# A field is kept quiet
transports: long-polling, websocket, callback-polling
alice -> /meta/handshake
alice <- /meta/handshake ok {"clientId": new $alice}
-- says: .version: expected no such field

# A message is kept quiet
transports: long-polling, websocket
alice handshakes
alice subscribes to /lies/kept
alice -> /lies/kept {"data": 1}
alice <- /lies/kept ok
-- says: expected

# A second reply in a frame is kept quiet
transports: websocket
alice handshakes
alice subscribes to /lies/second
alice -> /lies/second {"data": 1}
         /lies/else {"data": 2}
alice <- /lies/second {"data": 1}
         /lies/second ok
-- says: the story is over but alice

# A message is made up
transports: long-polling, callback-polling
alice handshakes
alice -> /meta/connect
alice <- /lies/made/up {"data": 1}
         /meta/connect ok
-- says: expected

# A connect is said to be held
transports: long-polling, websocket, callback-polling
alice handshakes
alice ~> /meta/connect
-- says: alice is not held but hears

# A status is wrong
transports: long-polling
alice -> PUT /cometd
alice <- 403
-- says: outcome: expected 403, got 400

# The end comes too early
transports: websocket
alice handshakes
alice subscribes to /lies/early
bob handshakes
bob publishes 1 to /lies/early
-- says: the story is over but alice

# A held connect was released
transports: long-polling, callback-polling
alice handshakes
alice subscribes to /lies/released
alice connects
alice ~> /meta/connect
bob handshakes
bob publishes 1 to /lies/released
-- says: the story is over but alice

# A socket is said to be closed
transports: websocket
alice handshakes
alice -> /meta/connect
alice <- closed 1000
-- says: outcome: expected closed 1000, got 200
"""
SAYS = [line.removeprefix("-- says: ") for line in LIES.splitlines() if "says: " in line]
PLAYS = [
    (Play(story, transport), says)
    for story, says in zip(read_stories(LIES), SAYS, strict=True)
    for transport in story.transports
]


@pytest.fixture(scope="module")
def house_of_lies() -> Iterator[Theatre]:
    with Theatre([play for play, _ in PLAYS]) as theatre:
        yield theatre


@pytest.mark.parametrize(("lie", "says"), PLAYS, ids=[str(play) for play, _ in PLAYS])
def test_a_lie_is_found_out(lie: Play, says: str, house_of_lies: Theatre) -> None:
    complaint = house_of_lies.watch(lie)
    assert complaint is not None
    assert lie.story.title in complaint
    assert says in complaint


def test_a_server_that_does_not_start_fails_its_plays() -> None:
    text = "# T\ntransports: long-polling\n! timeout = -1\nalice handshakes\n"
    play = Play(read_stories(text)[0], "long-polling")
    with Theatre([play]) as theatre, pytest.raises(RuntimeError, match="timeout"):
        theatre.watch(play)
