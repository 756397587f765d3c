"""The credentials that the requests of a session have shown, so that each is checked once."""

import secrets
from hashlib import blake2b

from holdfast.bayeux.wire.identity import Identity
from holdfast.bayeux.wire.login import Login
from holdfast.login.rights_file import Revoked

# For each session; a client has few at a time.
_MOST = 4


class Proofs:
    """Remembers digests of credentials with their sessions."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def includes(self, identity: Identity, shown: str) -> bool:
        """Return whether requests of this client have shown the same before."""
        digest = self._digest(shown)
        return any(digest == each for each, _ in identity.proofs)

    def add(self, identity: Identity, shown: str, login: Login) -> None:
        """Remember what a request showed, and the login that it proved."""
        identity.proofs = (*identity.proofs[1 - _MOST :], (self._digest(shown), login))

    def _digest(self, shown: str) -> bytes:
        text = shown.encode("utf-8", "surrogateescape")
        return blake2b(text, digest_size=16, key=self._key).digest()


def forget_revoked(identity: Identity, revoked: Revoked) -> None:
    """Forget proofs of revoked logins, so that their credentials are checked again."""
    identity.proved_by = None
    identity.proofs = tuple(each for each in identity.proofs if not revoked.includes(each[1]))
