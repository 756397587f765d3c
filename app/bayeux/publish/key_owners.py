"""Publish keys by owner: keys of different clients never match."""

from base64 import urlsafe_b64encode
from hashlib import blake2b

from holdfast.bayeux.session import Session
from holdfast.delivery.messages.publish_keys import PublishKey
from holdfast.delivery.queues.receivers import NOBODY

# A multiple of three, so that base64 needs no padding.
_BYTES = 15


def key_of(session: Session, given: str) -> PublishKey:
    """Return the publish key for the text that this session's client chose."""
    text = f"{_owner(session)}\n{given}".encode()
    return PublishKey(urlsafe_b64encode(blake2b(text, digest_size=_BYTES).digest()).decode())


def _owner(session: Session) -> str:
    """Return who may repeat the publish: a subject, from any of its sessions.

    Without a subject, it is the browser: its secret cookie survives the reload of a page. Without
    cookies, it is the session, because each session is given a new cookie.
    """
    if session.subject != NOBODY:
        return f"subject {session.subject}"
    return f"browser {session.identity.browser or session.client_id}"
