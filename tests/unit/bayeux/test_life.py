"""The life of a session, row by row, and the picture of it in the documentation."""

from pathlib import Path

import pytest

from app.bayeux.life import NEXT, IllegalTransition, Input, State, step

PAGE = Path(__file__).parents[3] / "docs" / "sessions.md"

PAIRS = [(state, seen) for state in State for seen in Input]


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> handshaken: handshake"]
    lines += [f"    {old.value} --> {new.value}: {i.value}" for (old, i), new in NEXT.items()]
    ends = [state for state in State if not any(old is state for old, _ in NEXT)]
    return "\n".join([*lines, *(f"    {state.value} --> [*]" for state in ends)])


# Every end is an end, whatever the session does.
ENDS = dict.fromkeys((Input.DISCONNECT, Input.EXPIRE, Input.FAIL), State.GONE)
WITH_CLIENT = {
    Input.CONNECT: State.CONNECTED,
    Input.LEAVE: State.AWAY,
    Input.RESUME: State.HANDSHAKEN,
    **ENDS,
}
LIFE = {
    State.HANDSHAKEN: WITH_CLIENT,
    State.CONNECTED: WITH_CLIENT,
    State.AWAY: {Input.RESUME: State.HANDSHAKEN, **ENDS},
    State.GONE: {},
}


@pytest.mark.parametrize(("state", "seen"), PAIRS, ids=[f"{s.name}-{i.name}" for s, i in PAIRS])
def test_a_session_takes_what_can_happen_to_it_and_nothing_else(state: State, seen: Input) -> None:
    expected = LIFE[state].get(seen)
    if expected is None:
        with pytest.raises(IllegalTransition, match=f"{seen.name} while {state.name}"):
            step(state, seen)
    else:
        assert step(state, seen) is expected


def test_the_documentation_shows_the_table() -> None:
    picture = f"```mermaid\n{diagram()}\n```\n"
    assert picture in PAGE.read_text("utf-8"), f"{PAGE.name} should contain:\n{picture}"
