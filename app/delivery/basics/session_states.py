"""The session state machine. docs/building/session-states.md shows its table.

`Receiver` derives from the state whether and how a session has ended.
"""

from enum import Enum


class SessionState(Enum):
    """The state of a session."""

    # Members are compared by identity; Enum's own hash is a slow Python function.
    __hash__ = object.__hash__

    HANDSHAKEN = "handshaken"
    CONNECTED = "connected"
    # The client of a named session has left. The queue waits for the next client.
    AWAY = "away"
    # The dispatcher is DEAD: messages become dead letters until a new client takes over.
    STOPPED = "stopped"
    # As STOPPED, and the client has left.
    STOPPED_AWAY = "stopped_away"
    # Ended. Messages accepted earlier that arrive late are discarded, ...
    ENDED = "ended"
    # ... or become dead letters, ...
    ENDED_WITH_LETTERS = "ended_with_letters"
    # ... or become dead letters, and the client is advised to handshake again.
    FAILED = "failed"


# Messages may enter the queue in these states. In all others, the dispatcher is DEAD.
OPEN = frozenset((SessionState.HANDSHAKEN, SessionState.CONNECTED, SessionState.AWAY))
GONE = frozenset((SessionState.ENDED, SessionState.ENDED_WITH_LETTERS, SessionState.FAILED))
# The client has left and may return.
AWAY = frozenset((SessionState.AWAY, SessionState.STOPPED_AWAY))
WITHOUT_CLIENT = AWAY | GONE


class SessionInput(Enum):
    """Events that change a session's state."""

    __hash__ = object.__hash__

    CONNECT = "connect"
    LEAVE = "leave"
    RESUME = "resume"
    # The last attempt failed, or the client refuses all further messages.
    STOP = "stop"
    # The client or the server ends the session, without or with dead letters.
    DISCONNECT = "disconnect"
    END = "end"
    # A plain session's client was silent for too long, or the client of another session whose queue
    # leaves no dead letters. In the second case, messages that arrive late still become dead
    # letters.
    EXPIRE = "expire"
    LAPSE = "lapse"
    # A failure ends the session. After EXPEL, the client must not return.
    FAIL = "fail"
    EXPEL = "expel"


# Ends that statistics and the journal count as one.
COUNTED_AS = {
    SessionInput.END: SessionInput.DISCONNECT,
    SessionInput.LAPSE: SessionInput.EXPIRE,
    SessionInput.EXPEL: SessionInput.FAIL,
}

_ENDS = {
    SessionInput.DISCONNECT: SessionState.ENDED,
    SessionInput.END: SessionState.ENDED_WITH_LETTERS,
    SessionInput.EXPIRE: SessionState.ENDED,
    SessionInput.LAPSE: SessionState.ENDED_WITH_LETTERS,
    SessionInput.FAIL: SessionState.FAILED,
    SessionInput.EXPEL: SessionState.ENDED_WITH_LETTERS,
}
# Once messages become dead letters, all later ones do.
_ENDS_OF_STOPPED = _ENDS | {
    SessionInput.DISCONNECT: SessionState.ENDED_WITH_LETTERS,
    SessionInput.EXPIRE: SessionState.ENDED_WITH_LETTERS,
}
_WITH_CLIENT = _ENDS | {
    SessionInput.CONNECT: SessionState.CONNECTED,
    SessionInput.LEAVE: SessionState.AWAY,
    SessionInput.RESUME: SessionState.HANDSHAKEN,
    SessionInput.STOP: SessionState.STOPPED,
}

NEXT: dict[SessionState, dict[SessionInput, SessionState]] = {
    SessionState.HANDSHAKEN: _WITH_CLIENT,
    SessionState.CONNECTED: _WITH_CLIENT,
    SessionState.AWAY: _ENDS
    | {
        SessionInput.RESUME: SessionState.HANDSHAKEN,
        SessionInput.STOP: SessionState.STOPPED_AWAY,
    },
    SessionState.STOPPED: _ENDS_OF_STOPPED
    | {
        SessionInput.CONNECT: SessionState.STOPPED,
        SessionInput.LEAVE: SessionState.STOPPED_AWAY,
        SessionInput.RESUME: SessionState.HANDSHAKEN,
        SessionInput.STOP: SessionState.STOPPED,
    },
    SessionState.STOPPED_AWAY: _ENDS_OF_STOPPED
    | {
        SessionInput.RESUME: SessionState.HANDSHAKEN,
        SessionInput.STOP: SessionState.STOPPED_AWAY,
    },
    SessionState.ENDED: {},
    SessionState.ENDED_WITH_LETTERS: {},
    SessionState.FAILED: {},
}


class IllegalTransition(Exception):
    """A bug: the table has no transition for this input in this state."""


def step(state: SessionState, seen: SessionInput) -> SessionState:
    """Return the next state. Raises `IllegalTransition`."""
    try:
        return NEXT[state][seen]
    except KeyError:
        raise IllegalTransition(f"{seen.name} while {state.name}") from None
