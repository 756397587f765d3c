"""Whose session a handshake asks for, as far as the door can read it."""

from typing import Protocol

from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.codec import Json, ext_of
from holdfast.bayeux.wire.terms import Terms, TermsInvalid, asks_for_terms


class Claims(Protocol):
    """Reads credentials, which the home of the subject verifies."""

    def named_by(self, handshake: Json, caller: Caller) -> str | None:
        """Return the subject that the credentials of a handshake name, or None."""
        ...


class Newcomers:
    """Finds the subject of a new session: of its name or, without one, of its login."""

    def __init__(self, logins: Claims | None) -> None:
        self._logins = logins

    def subject_of(self, handshake: Json, caller: Caller) -> str | None:
        """Return the subject that a handshake claims. Without one, any shard may have it."""
        named = _named_in(handshake)
        if named is None and self._logins is not None:
            return self._logins.named_by(handshake, caller)
        return named


def _named_in(handshake: Json) -> str | None:
    ext = ext_of(handshake)
    if not asks_for_terms(ext):
        return None
    asked = ext["delivery"]
    try:
        return Terms.of(True if asked == "true" else asked).subject
    except TermsInvalid:
        # Any shard refuses it.
        return None
