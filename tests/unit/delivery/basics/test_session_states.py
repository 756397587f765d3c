"""The session states, row by row, and their diagram in the documentation."""

from pathlib import Path

import pytest

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.session_states import (
    COUNTED_AS,
    NEXT,
    IllegalTransition,
    SessionInput,
    SessionState,
    step,
)
from holdfast.delivery.queues.dispatcher import Dispatcher, DispatcherState
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver

PAGE = Path(__file__).parents[4] / "docs" / "building" / "session-states.md"

# Columns: connect, leave, resume, stop, disconnect, end, expire, lapse, fail, expel.
TABLE = """
HANDSHAKEN          CONNECTED  AWAY          HANDSHAKEN  STOPPED       ENDED               ENDED_WITH_LETTERS  ENDED               ENDED_WITH_LETTERS  FAILED  ENDED_WITH_LETTERS
CONNECTED           CONNECTED  AWAY          HANDSHAKEN  STOPPED       ENDED               ENDED_WITH_LETTERS  ENDED               ENDED_WITH_LETTERS  FAILED  ENDED_WITH_LETTERS
AWAY                -          -             HANDSHAKEN  STOPPED_AWAY  ENDED               ENDED_WITH_LETTERS  ENDED               ENDED_WITH_LETTERS  FAILED  ENDED_WITH_LETTERS
STOPPED             STOPPED    STOPPED_AWAY  HANDSHAKEN  STOPPED       ENDED_WITH_LETTERS  ENDED_WITH_LETTERS  ENDED_WITH_LETTERS  ENDED_WITH_LETTERS  FAILED  ENDED_WITH_LETTERS
STOPPED_AWAY        -          -             HANDSHAKEN  STOPPED_AWAY  ENDED_WITH_LETTERS  ENDED_WITH_LETTERS  ENDED_WITH_LETTERS  ENDED_WITH_LETTERS  FAILED  ENDED_WITH_LETTERS
ENDED               -          -             -           -             -                   -                   -                   -                   -       -
ENDED_WITH_LETTERS  -          -             -           -             -                   -                   -                   -                   -       -
FAILED              -          -             -           -             -                   -                   -                   -                   -       -
"""  # noqa: E501 - a row is a row

# Columns: takes messages, leaves letters, is gone, has left, may return.
ANSWERS = """
HANDSHAKEN          yes  no   no   no   no
CONNECTED           yes  no   no   no   no
AWAY                yes  no   no   yes  no
STOPPED             no   yes  no   no   no
STOPPED_AWAY        no   yes  no   yes  no
ENDED               no   no   yes  yes  no
ENDED_WITH_LETTERS  no   yes  yes  yes  no
FAILED              no   yes  yes  yes  yes
"""

# How a session comes into each state.
WAYS = {
    SessionState.HANDSHAKEN: [],
    SessionState.CONNECTED: [SessionInput.CONNECT],
    SessionState.AWAY: [SessionInput.LEAVE],
    SessionState.STOPPED: [SessionInput.STOP],
    SessionState.STOPPED_AWAY: [SessionInput.STOP, SessionInput.LEAVE],
    SessionState.ENDED: [SessionInput.DISCONNECT],
    SessionState.ENDED_WITH_LETTERS: [SessionInput.END],
    SessionState.FAILED: [SessionInput.FAIL],
}


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().split("\n")]


def receiver(*seen: SessionInput) -> Receiver:
    found = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)
    found.dispatcher = Dispatcher()
    found.dispatcher.contact(0.0)
    for each in seen:
        found.advance(each)
    return found


@pytest.mark.parametrize("row", rows(TABLE), ids=[row[0] for row in rows(TABLE)])
def test_a_session_state_changes_only_as_the_table_says(row: list[str]) -> None:
    state, *after = row
    for seen, expected in zip(SessionInput, after, strict=True):
        if expected == "-":
            with pytest.raises(IllegalTransition, match=f"{seen.name} while {state}"):
                step(SessionState[state], seen)
        else:
            assert step(SessionState[state], seen) is SessionState[expected]


@pytest.mark.parametrize("row", rows(ANSWERS), ids=[row[0] for row in rows(ANSWERS)])
def test_a_receiver_has_the_properties_of_its_state(row: list[str]) -> None:
    state, *expected = row
    found = receiver(*WAYS[SessionState[state]])
    assert found.state is SessionState[state]
    answers = (
        found.takes_messages,
        found.leaves_letters,
        found.is_gone,
        found.has_left,
        found.may_return,
    )
    assert answers == tuple(each == "yes" for each in expected)


@pytest.mark.parametrize("state", SessionState, ids=[state.name for state in SessionState])
def test_a_dispatcher_is_dead_exactly_in_the_states_that_take_no_messages(
    state: SessionState,
) -> None:
    found = receiver(*WAYS[state])
    assert found.dispatcher is not None
    assert found.dispatcher.is_dead is not found.takes_messages
    assert (found.connection_state is DispatcherState.DEAD) is not found.takes_messages


def test_a_stopped_session_that_is_resumed_has_no_dispatcher_and_is_alive_when_it_connects() -> (
    None
):
    found = receiver(SessionInput.STOP, SessionInput.RESUME)
    assert found.dispatcher is None
    told = [found.connection_state]
    found.advance(SessionInput.CONNECT)
    told.append(found.connection_state)
    assert told == [DispatcherState.UNDEF, DispatcherState.ALIVE]


@pytest.mark.parametrize("state", [DispatcherState.ALIVE, DispatcherState.POLLING])
def test_without_a_connecting_client_no_session_is_alive(state: DispatcherState) -> None:
    found = receiver()
    assert found.dispatcher is not None
    found.dispatcher.state = state
    told = [found.connection_state]
    for seen in (SessionInput.CONNECT, SessionInput.LEAVE):
        found.advance(seen)
        told.append(found.connection_state)
    before = DispatcherState.UNDEF if state is DispatcherState.ALIVE else state
    assert told == [before, state, DispatcherState.UNDEF]


def test_every_end_is_counted_as_one_of_three() -> None:
    ends = [seen for seen in SessionInput if NEXT[step(SessionState.CONNECTED, seen)] == {}]
    three = {SessionInput.DISCONNECT, SessionInput.EXPIRE, SessionInput.FAIL}
    assert {COUNTED_AS.get(seen, seen) for seen in ends} == three


# The diagram

GROUPS = {
    "delivering": (SessionState.HANDSHAKEN, SessionState.CONNECTED, SessionState.AWAY),
    "refusing": (SessionState.STOPPED, SessionState.STOPPED_AWAY),
}


def diagram() -> str:
    """The table as a Mermaid state diagram; what a whole group has in common is one arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for group, states in GROUPS.items():
        for seen in SessionInput:
            after = {state: NEXT[state].get(seen) for state in states}
            if len(set(after.values())) == 1:
                after = {states[0]: after[states[0]]}
            for state, new in after.items():
                if new is not None:
                    old = state.value if len(after) > 1 else group
                    arrows.setdefault((old, new.value), []).append(seen.value)
    lines = ["stateDiagram-v2", "    [*] --> handshaken: handshake"]
    for group, states in GROUPS.items():
        lines.append(f"    state {group} {{")
        lines += [f"        {state.value}" for state in states]
        lines.append("    }")
    lines += [f"    {old} --> {new}: {', '.join(seen)}" for (old, new), seen in arrows.items()]
    lines += [f"    {state.value} --> [*]" for state in SessionState if not NEXT[state]]
    return "\n".join(lines)


def test_the_documentation_shows_the_table() -> None:
    picture = f"```mermaid\n{diagram()}\n```\n"
    assert picture in PAGE.read_text("utf-8"), f"{PAGE.name} should contain:\n{picture}"
