"""The life of a session as a table; docs/sessions.md shows it as a diagram made from here."""

from enum import Enum


class State(Enum):
    """Where a session stands."""

    # Rows are looked up by identity; the usual hash of enums is a function in Python.
    __hash__ = object.__hash__

    HANDSHAKEN = "handshaken"
    CONNECTED = "connected"
    # A named session whose client has left; its queue waits for the next one.
    AWAY = "away"
    GONE = "gone"


class Input(Enum):
    """What can happen to a session."""

    __hash__ = object.__hash__

    CONNECT = "connect"
    DISCONNECT = "disconnect"
    EXPIRE = "expire"
    FAIL = "fail"
    LEAVE = "leave"
    RESUME = "resume"


NEXT: dict[tuple[State, Input], State] = {
    (State.HANDSHAKEN, Input.CONNECT): State.CONNECTED,
    (State.HANDSHAKEN, Input.DISCONNECT): State.GONE,
    (State.HANDSHAKEN, Input.EXPIRE): State.GONE,
    (State.HANDSHAKEN, Input.FAIL): State.GONE,
    (State.HANDSHAKEN, Input.LEAVE): State.AWAY,
    (State.HANDSHAKEN, Input.RESUME): State.HANDSHAKEN,
    (State.CONNECTED, Input.CONNECT): State.CONNECTED,
    (State.CONNECTED, Input.DISCONNECT): State.GONE,
    (State.CONNECTED, Input.EXPIRE): State.GONE,
    (State.CONNECTED, Input.FAIL): State.GONE,
    (State.CONNECTED, Input.LEAVE): State.AWAY,
    (State.CONNECTED, Input.RESUME): State.HANDSHAKEN,
    (State.AWAY, Input.DISCONNECT): State.GONE,
    (State.AWAY, Input.EXPIRE): State.GONE,
    (State.AWAY, Input.FAIL): State.GONE,
    (State.AWAY, Input.RESUME): State.HANDSHAKEN,
}


class IllegalTransition(Exception):
    """A fault of ours: the table has no row for what happened."""


def step(state: State, seen: Input) -> State:
    """The state after `seen`."""
    try:
        return NEXT[state, seen]
    except KeyError:
        raise IllegalTransition(f"{seen.name} while {state.name}") from None
