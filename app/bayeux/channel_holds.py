"""Release of channels that are held back."""

from holdfast.bayeux.server_state import ServerState


def release_channel(state: ServerState, name: str, by: str = "operator") -> bool:
    """Release a held channel; return False if it was not held."""
    if not state.guard.release(name):
        return False
    state.store.release(name)
    state.journal.released(by, channel=name)
    # A former subscriber's entries of the channel go with its next connect.
    for session in state.routes.receivers(state.channels.named(name)):
        if session.queue.count:
            state.hub.flow_again(session)
    return True
