"""Ids of clients: unguessable, and recognised without a look-up.

Client ids, the identities of browsers and the names of reply channels have one form: the bucket of
their session in three digits, 22 random characters, which are more than 128 bits, and 4 characters
that only the key of the deployment can produce. An invented id is therefore refused by whatever
server gets it. All are letters and digits, as Bayeux wants client ids; ids of earlier releases
may have `-` and `_`, too.
"""

import re
from binascii import b2a_base64
from collections.abc import Callable, Sequence
from hashlib import blake2b
from hmac import compare_digest
from typing import Final

# Sessions are divided into this many parts. It never changes, because ids outlive releases.
BUCKETS: Final = 1000
_FORM: Final = re.compile(r"([0-9]{3}[A-Za-z0-9_-]{22})([A-Za-z0-9_-]{4})")
_RANDOM_TEXT: Final = 22
# Enough for an id, except about twice in a million times.
_RANDOM_BYTES: Final = 22
_SEAL_BYTES: Final = 3
_BUCKET_BYTES: Final = 8
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
# Formatting a number takes as long as sealing an id.
_DIGITS: Final = tuple(f"{bucket:03d}" for bucket in range(BUCKETS))
_ALL: Final = tuple(range(BUCKETS))
# How many pairs are made at a time. One alone takes three times as long, because its code is not in
# the processor's caches.
_AT_ONCE: Final = 32


class ClientIds:
    """Makes ids of clients, and recognises them.

    Args:
        key: The secret of the deployment.
        random_bytes: Returns so many random bytes.
        at_once: How many pairs are made when there is none.
        buckets: The buckets of this shard, from which new ids get theirs.
    """

    def __init__(
        self,
        key: bytes,
        random_bytes: Callable[[int], bytes],
        at_once: int = _AT_ONCE,
        buckets: Sequence[int] = _ALL,
    ) -> None:
        self._key = key
        self._buckets = tuple(buckets)
        self._owned = frozenset(buckets)
        self._random_bytes, self._at_once = random_bytes, at_once
        # A copy hashes one id.
        self._sealing = blake2b(digest_size=_SEAL_BYTES, key=key, person=b"id")
        # Ids that were not given to clients yet: of a session, of its browser, and so on.
        self._pairs: list[str] = []
        # Identities of browsers of restored sessions that an earlier release made.
        self._former: set[str] = set()

    def new(self, bucket: int | None = None) -> str:
        """Return a new id in this bucket, or in any of this shard."""
        random = self._random_bytes(_RANDOM_BYTES)
        return self._make(random, self._bucket_from(random) if bucket is None else bucket)

    def new_pair(self) -> tuple[str, str]:
        """Return new ids of a session and of its browser, both in the same bucket."""
        if not self._pairs:
            random = self._random_bytes(2 * self._at_once * _RANDOM_BYTES)
            for start in range(0, len(random), 2 * _RANDOM_BYTES):
                middle, end = start + _RANDOM_BYTES, start + 2 * _RANDOM_BYTES
                bucket = self._bucket_from(random[start:middle])
                self._pairs.append(self._make(random[start:middle], bucket))
                self._pairs.append(self._make(random[middle:end], bucket))
        browser = self._pairs.pop()
        return self._pairs.pop(), browser

    def fits(self, id: object) -> bool:
        """Return whether this deployment made the id, which may be any JSON value."""
        found = _FORM.fullmatch(id) if type(id) is str else None
        return found is not None and compare_digest(found[2], _text_of(self._digest(found[1])))

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

    def owns(self, bucket: int) -> bool:
        """Return whether this shard has the sessions in a bucket."""
        return bucket in self._owned

    def _bucket_from(self, random: bytes) -> int:
        return self._buckets[int.from_bytes(random) % len(self._buckets)]

    def _make(self, random: bytes, bucket: int) -> str:
        """Return an id of these random bytes, or of others if it has other characters."""
        while True:
            text = _letters_of(random)[:_RANDOM_TEXT]
            body = _DIGITS[bucket] + text
            seal = _text_of(self._digest(body))
            if len(text) == _RANDOM_TEXT and seal.isalnum():
                return body + seal
            random = self._random_bytes(_RANDOM_BYTES)

    def _digest(self, body: str) -> bytes:
        sealing = self._sealing.copy()
        sealing.update(body.encode())
        return sealing.digest()

    def _hash_of(self, name: bytes) -> int:
        digest = blake2b(name, digest_size=_BUCKET_BYTES, key=self._key, person=b"bucket")
        return int.from_bytes(digest.digest()) % BUCKETS


def _letters_of(random: bytes) -> str:
    """Return a random text of letters and digits, each as likely as any other."""
    return b2a_base64(random, newline=False).translate(None, b"+/=").decode()


def _text_of(data: bytes) -> str:
    return b2a_base64(data, newline=False).translate(_URL_SAFE).decode()
