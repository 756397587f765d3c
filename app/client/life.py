"""The life of a client: which state follows which, and where it may be used; no I/O."""

import asyncio
import os
from enum import Enum

FORKED = "this client was entered before a fork: create one in each process"
_ELSEWHERE = (
    "this client belongs to the event loop that entered it: create one in each loop, or use one "
    "SyncClient from threads"
)


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


def check_loop(home: asyncio.AbstractEventLoop) -> None:
    """Raise `WrongUse` outside of this event loop, where waiting would never end."""
    try:
        is_home = asyncio.get_running_loop() is home
    except RuntimeError:
        is_home = False
    if not is_home:
        raise WrongUse(_ELSEWHERE)


class Home:
    """The event loop and the process that are running when it is created."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()

    def check(self) -> None:
        """Raise `WrongUse` anywhere else."""
        if os.getpid() != self._process:
            raise WrongUse(FORKED)
        check_loop(self._loop)
