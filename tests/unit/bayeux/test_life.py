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


@pytest.mark.parametrize(("state", "seen"), PAIRS, ids=[f"{s.name}-{i.name}" for s, i in PAIRS])
def test_a_living_session_takes_everything_and_a_gone_one_nothing(
    state: State, seen: Input
) -> None:
    if state is State.GONE:
        with pytest.raises(IllegalTransition, match=f"{seen.name} while GONE"):
            step(state, seen)
    else:
        expected = State.CONNECTED if seen is Input.CONNECT else State.GONE
        assert step(state, seen) is expected


def test_the_table_has_no_rows_for_what_cannot_be() -> None:
    assert set(NEXT) == {pair for pair in PAIRS if pair[0] is not State.GONE}


def test_the_documentation_shows_the_table() -> None:
    picture = f"```mermaid\n{diagram()}\n```\n"
    assert picture in PAGE.read_text("utf-8"), f"{PAGE.name} should contain:\n{picture}"
