"""The states of a topic, a pure function of four conditions, and the transitions between them."""

from enum import Enum
from typing import Final


class TopicState(Enum):
    """The state of a topic."""

    # Members are compared by identity; Enum's own hash is a slow Python function.
    __hash__ = object.__hash__

    # A session subscribed to it, and nothing has been published.
    UNCONFIGURED = "UNCONFIGURED"
    ALIVE = "ALIVE"
    # Configured and without references: its destroy timer runs.
    UNREFERENCED = "UNREFERENCED"
    # Erased, but some of its messages still wait in queues.
    SOFTERASED = "SOFTERASED"
    # Ended, or not created yet.
    DEAD = "DEAD"


class TopicInput(Enum):
    """Inputs that change a topic's state."""

    __hash__ = object.__hash__

    # It was published to, or an administrative publish configured it.
    CONFIGURED = "configured"
    # The first message entered its history or a queue, or the last one left.
    REFERRED = "referred"
    RELEASED = "released"
    SUBSCRIBED = "subscribed"
    UNSUBSCRIBED = "unsubscribed"
    ERASED = "erased"
    # Its destroy timer ran out.
    TIMED_OUT = "timed out"


# In this order: it is configured, its history has messages, its messages are in queues, it has an
# exact subscription. All other combinations are invalid.
_STATES: Final = {
    (True, True, True, True): TopicState.ALIVE,
    (True, True, True, False): TopicState.ALIVE,
    (True, True, False, True): TopicState.ALIVE,
    (True, True, False, False): TopicState.ALIVE,
    (True, False, True, True): TopicState.ALIVE,
    (True, False, True, False): TopicState.ALIVE,
    (True, False, False, True): TopicState.ALIVE,
    (True, False, False, False): TopicState.UNREFERENCED,
    (False, False, True, False): TopicState.SOFTERASED,
    (False, False, False, True): TopicState.UNCONFIGURED,
    (False, False, False, False): TopicState.DEAD,
}

_UNREFERENCED: Final = frozenset((TopicState.ALIVE, TopicState.UNREFERENCED))
_ALIVE: Final = frozenset((TopicState.ALIVE,))
_DEAD: Final = frozenset((TopicState.DEAD,))
_ERASED: Final = frozenset((TopicState.SOFTERASED, TopicState.DEAD))
_UNCONFIGURED: Final = frozenset((TopicState.UNCONFIGURED,))

# The states that each input may lead to. The conditions determine which one.
NEXT: Final = {
    TopicState.DEAD: {
        TopicInput.CONFIGURED: _UNREFERENCED,
        TopicInput.SUBSCRIBED: _UNCONFIGURED,
        # A session returned messages to a shared queue.
        TopicInput.REFERRED: frozenset((TopicState.SOFTERASED,)),
    },
    TopicState.UNCONFIGURED: {
        TopicInput.CONFIGURED: _ALIVE,
        TopicInput.SUBSCRIBED: _UNCONFIGURED,
        TopicInput.UNSUBSCRIBED: frozenset((TopicState.UNCONFIGURED, TopicState.DEAD)),
        TopicInput.ERASED: _DEAD,
    },
    TopicState.ALIVE: {
        TopicInput.CONFIGURED: _ALIVE,
        TopicInput.REFERRED: _ALIVE,
        TopicInput.RELEASED: _UNREFERENCED,
        TopicInput.SUBSCRIBED: _ALIVE,
        TopicInput.UNSUBSCRIBED: _UNREFERENCED,
        TopicInput.ERASED: _ERASED,
    },
    TopicState.UNREFERENCED: {
        TopicInput.CONFIGURED: frozenset((TopicState.UNREFERENCED,)),
        TopicInput.REFERRED: _ALIVE,
        TopicInput.SUBSCRIBED: _ALIVE,
        TopicInput.ERASED: _DEAD,
        TopicInput.TIMED_OUT: _DEAD,
    },
    TopicState.SOFTERASED: {
        TopicInput.CONFIGURED: _ALIVE,
        TopicInput.REFERRED: frozenset((TopicState.SOFTERASED,)),
        TopicInput.RELEASED: _DEAD,
        TopicInput.SUBSCRIBED: _ALIVE,
        TopicInput.ERASED: _ERASED,
    },
}


class IllegalTopic(Exception):
    """A bug: the tables do not have this combination of conditions, or this transition."""


def state_of(
    *, is_configured: bool, has_history: bool, is_queued: bool, is_subscribed: bool
) -> TopicState:
    """Return the state for these conditions. Raises `IllegalTopic`."""
    conditions = (is_configured, has_history, is_queued, is_subscribed)
    state = _STATES.get(conditions)
    if state is None:
        raise IllegalTopic(f"configured, history, queued, subscribed: {conditions}")
    return state


def step(state: TopicState, seen: TopicInput, found: TopicState) -> TopicState:
    """Return `found` if it may follow the state after this input. Raises `IllegalTopic`."""
    if found not in NEXT[state].get(seen, ()):
        raise IllegalTopic(f"{found.name} after {seen.name} while {state.name}")
    return found
