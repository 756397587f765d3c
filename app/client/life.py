"""The life of a client: which state follows which; no I/O."""

from enum import Enum


class ClientState(Enum):
    """The state of a client."""

    NEW = "new"
    # It shakes hands, for the first time or because the server has forgotten its session.
    HANDSHAKING = "handshaking"
    CONNECTED = "connected"
    # The server cannot be reached; its session may still live there.
    DISCONNECTED = "disconnected"
    # It finishes what it has begun, and tells the server so.
    CLOSING = "closing"
    # It was closed, or the server ended its session for good.
    CLOSED = "closed"


class ClientInput(Enum):
    """The events that change the state."""

    OPEN = "open"
    CONTACT = "contact"
    LOSS = "loss"
    FORGET = "forget"
    CLOSE = "close"
    END = "end"


_NEXT: dict[tuple[ClientState, ClientInput], ClientState] = {
    (ClientState.NEW, ClientInput.OPEN): ClientState.HANDSHAKING,
    (ClientState.HANDSHAKING, ClientInput.CONTACT): ClientState.CONNECTED,
    (ClientState.HANDSHAKING, ClientInput.LOSS): ClientState.HANDSHAKING,
    (ClientState.HANDSHAKING, ClientInput.FORGET): ClientState.HANDSHAKING,
    (ClientState.CONNECTED, ClientInput.CONTACT): ClientState.CONNECTED,
    (ClientState.CONNECTED, ClientInput.LOSS): ClientState.DISCONNECTED,
    (ClientState.CONNECTED, ClientInput.FORGET): ClientState.HANDSHAKING,
    (ClientState.DISCONNECTED, ClientInput.CONTACT): ClientState.CONNECTED,
    (ClientState.DISCONNECTED, ClientInput.LOSS): ClientState.DISCONNECTED,
    (ClientState.DISCONNECTED, ClientInput.FORGET): ClientState.HANDSHAKING,
    **{
        (state, ClientInput.CLOSE): ClientState.CLOSING
        for state in (ClientState.HANDSHAKING, ClientState.CONNECTED, ClientState.DISCONNECTED)
    },
    **{
        (state, ClientInput.END): ClientState.CLOSED
        for state in ClientState
        if state is not ClientState.NEW
    },
}


class WrongUse(RuntimeError):
    """The program uses a client too early, too late, or where it was not entered."""


def next_state(state: ClientState, seen: ClientInput) -> ClientState:
    """Return the state after this input."""
    try:
        return _NEXT[state, seen]
    except KeyError:
        raise WrongUse(f"{seen.value} while {state.value}") from None
