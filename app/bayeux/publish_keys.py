"""Whose key of a publish it is: what one person sends twice is nobody else's message."""

from base64 import urlsafe_b64encode
from hashlib import blake2b

from app.bayeux.sessions import Session
from app.delivery.publish_keys import Key
from app.delivery.receivers import NOBODY

# So that base64 has nothing to fill up.
_BYTES = 15


def key_of(session: Session, given: str) -> Key:
    """The key that this session's client gave to its message."""
    said = f"{_owner(session)}\n{given}".encode()
    return Key(urlsafe_b64encode(blake2b(said, digest_size=_BYTES).digest()).decode())


def _owner(session: Session) -> str:
    """Whoever may send the message again: a subject, in whichever of its sessions.

    Who has told no name is the browser, whose secret cookie survives the loading of a page as
    names do. Without one of them each session stands for itself, since it is given a new cookie.
    """
    if session.subject != NOBODY:
        return f"subject {session.subject}"
    return f"browser {session.browser or session.client_id}"
