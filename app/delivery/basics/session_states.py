"""The table of session states; docs/sessions.md shows it.

All questions about the end of a session are answered by its state: see `Receiver`.
"""

from enum import Enum


class SessionState(Enum):
    """The state of a session."""

    # Members are compared by identity; Enum's own hash is a slow Python function.
    __hash__ = object.__hash__

    HANDSHAKEN = "handshaken"
    CONNECTED = "connected"
    # A named session whose client has left; its queue waits for the next client.
    AWAY = "away"
    # Its dispatcher is DEAD: messages become dead letters until a new client takes it over.
    STOPPED = "stopped"
    # The same, and its client has left.
    STOPPED_AWAY = "stopped_away"
    # Ended. Messages that were accepted for it and arrive late are discarded, ...
    ENDED = "ended"
    # ... become dead letters, ...
    ENDED_WITH_LETTERS = "ended_with_letters"
    # ... or become dead letters, and its client is advised to handshake again.
    FAILED = "failed"


# In these, messages may enter the queue; in all others, the dispatcher is DEAD.
OPEN = frozenset((SessionState.HANDSHAKEN, SessionState.CONNECTED, SessionState.AWAY))
GONE = frozenset((SessionState.ENDED, SessionState.ENDED_WITH_LETTERS, SessionState.FAILED))
# The client has left, and may come back.
AWAY = frozenset((SessionState.AWAY, SessionState.STOPPED_AWAY))
WITHOUT_CLIENT = AWAY | GONE


class SessionInput(Enum):
    """Events that change a session's state."""

    __hash__ = object.__hash__

    CONNECT = "connect"
    LEAVE = "leave"
    RESUME = "resume"
    # Its last delivery attempt has failed, or its client refuses all further messages.
    STOP = "stop"
    # The client or the server ends it, without dead letters or with them.
    DISCONNECT = "disconnect"
    END = "end"
    # The client of a plain session was silent for too long, or that of another session whose queue
    # leaves no dead letters; of the second, messages that arrive late do.
    EXPIRE = "expire"
    LAPSE = "lapse"
    # A failure ends it; with the second, its client has lost the right to return.
    FAIL = "fail"
    EXPEL = "expel"


# Ends that statistics and the journal do not tell apart.
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
# Once messages become dead letters, later ones do so as well.
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
    """A bug: the table has no entry for this event in this state."""


def step(state: SessionState, seen: SessionInput) -> SessionState:
    """Return the state after `seen`. Raises `IllegalTransition`."""
    try:
        return NEXT[state][seen]
    except KeyError:
        raise IllegalTransition(f"{seen.name} while {state.name}") from None
