"""Ids of clients: unguessable, and recognised without a look-up.

Client ids, the identities of browsers and the names of reply channels have one form: the bucket of
their session in three digits, 128 random bits, and 4 characters that only the key of the deployment
can produce. An invented id is therefore refused by whatever server gets it.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import blake2b
from hmac import compare_digest
from typing import Final

# Sessions are divided into this many parts. It never changes, because ids outlive releases.
BUCKETS: Final = 1000
_FORM: Final = re.compile(r"([0-9]{3}[A-Za-z0-9_-]{22})([A-Za-z0-9_-]{4})")
_SEAL_BYTES: Final = 3
_BUCKET_BYTES: Final = 8


class ClientIds:
    """Makes ids of clients, and recognises them.

    Args:
        key: The secret of the deployment.
        random_bits: Returns 128 random bits as 32 hexadecimal digits.
    """

    def __init__(self, key: bytes, random_bits: Callable[[], str]) -> None:
        self._key = key
        self._random_bits = random_bits
        # Identities of browsers of restored sessions that an earlier release made.
        self._former: set[str] = set()

    def new(self, bucket: int | None = None) -> str:
        """Return a new id in this bucket, or in any."""
        bits = bytes.fromhex(self._random_bits())
        if bucket is None:
            bucket = self._hash_of(bits)
        body = f"{bucket:03d}{urlsafe_b64encode(bits)[:22].decode()}"
        return body + self._seal(body)

    def fits(self, id: object) -> bool:
        """Return whether this deployment made the id, which may be any JSON value."""
        found = _FORM.fullmatch(id) if type(id) is str else None
        return found is not None and compare_digest(found[2], self._seal(found[1]))

    def keep(self, browser: str) -> None:
        """Remember the identity of the browser of a restored session, whatever its form."""
        if not self.fits(browser):
            self._former.add(browser)

    def is_browser(self, browser: str) -> bool:
        """Return whether this deployment gave a browser the identity."""
        return self.fits(browser) or browser in self._former

    def bucket_of(self, subject: str) -> int:
        """Return the bucket of a subject."""
        return self._hash_of(subject.encode())

    def bucket_in(self, id: str) -> int:
        """Return the bucket of an id; ids of earlier releases have one, too."""
        return int(id[:3]) if _FORM.fullmatch(id) is not None else self._hash_of(id.encode())

    def _seal(self, body: str) -> str:
        digest = blake2b(body.encode(), digest_size=_SEAL_BYTES, key=self._key, person=b"id")
        return urlsafe_b64encode(digest.digest()).decode()

    def _hash_of(self, name: bytes) -> int:
        digest = blake2b(name, digest_size=_BUCKET_BYTES, key=self._key, person=b"bucket")
        return int.from_bytes(digest.digest()) % BUCKETS
