"""Keys that verify tokens. A key decides on the algorithm, never the token."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509 import load_pem_x509_certificates
from jwt import PyJWK

from holdfast.login.failures import Unusable

# A shorter secret can be guessed.
LEAST_SECRET = 32
_LEAST_RSA_BITS = 2048
_MOST_KEYS = 64
_LONGEST_NAME = 64
_BY_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_BY_CURVE = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_BY_SECRET = ("HS256", "HS384", "HS512")
_PEM = b"-----BEGIN "
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_PUBLIC = b"-----BEGIN PUBLIC KEY-----"


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key with the algorithms that it may be used with."""

    # Empty if the key has no id: then it is tried for every token.
    id: str
    key: Any
    algorithms: tuple[str, ...]
    # All bytes of the file of a secret, if it has more: a newline at its end, for example.
    untrimmed: bytes = b""


@dataclass(frozen=True, slots=True)
class VerificationKeys:
    """All keys of one source."""

    keys: tuple[VerificationKey, ...] = ()
    # The keys of the source that are unusable, each with the reason.
    skipped: tuple[str, ...] = ()

    def matching(self, key_id: object, algorithm: object) -> list[VerificationKey]:
        """Return the keys that may have signed a token with this header."""
        return [
            each
            for each in self.keys
            if algorithm in each.algorithms and (key_id is None or each.id in ("", key_id))
        ]

    def knows(self, key_id: object) -> bool:
        """Return whether a key matches: None matches all keys, and a key without an id all ids."""
        return any(key_id is None or each.id in ("", key_id) for each in self.keys)


def read_keys(text: bytes) -> VerificationKeys:
    """Read a file of keys: a JWK Set, public keys or certificates in PEM, or one secret.

    Raises `Unusable`.
    """
    stripped = text.strip()
    if stripped.startswith(b"{"):
        return read_key_set(stripped, allows_secrets=True)
    if stripped.startswith(_PEM):
        return VerificationKeys(tuple(_of_pem(stripped)))
    if len(stripped) < LEAST_SECRET:
        raise Unusable(f"a secret needs at least {LEAST_SECRET} bytes")
    untrimmed = b"" if text == stripped else text
    return VerificationKeys((VerificationKey("", stripped, _BY_SECRET, untrimmed),))


def read_key_set(text: bytes, *, allows_secrets: bool = False) -> VerificationKeys:
    """Read a JWK Set. Keys for encryption are left out, unusable ones are skipped.

    Secrets in a published set would let anybody sign, so they are skipped too. Raises `Unusable`.
    """
    try:
        given = orjson.loads(text)
        entries = given.get("keys", [given]) if isinstance(given, Mapping) else None
    except orjson.JSONDecodeError as error:
        raise Unusable(f"not JSON: {error}") from None
    if not isinstance(entries, list):
        raise Unusable("not a JWK Set: the member keys must be a list")
    found: list[VerificationKey] = []
    skipped: list[str] = []
    for number, entry in enumerate(entries[:_MOST_KEYS], 1):
        try:
            if not isinstance(entry, Mapping):
                raise Unusable("not an object")
            if _is_for_signatures(entry):
                found.append(_of_jwk(entry, allows_secrets=allows_secrets))
        except Unusable as unusable:
            skipped.append(f"key {number}{_named(entry)}: {unusable}")
    if not found:
        more = f" ({skipped[0]})" if skipped else ""
        raise Unusable(f"no key that can verify a token{more}")
    return VerificationKeys(tuple(found), tuple(skipped))


def _named(entry: object) -> str:
    """Return what identifies a key to its owner, shortened."""
    key_id = entry.get("kid") if isinstance(entry, Mapping) else None
    return f" ({key_id[:_LONGEST_NAME]!r})" if isinstance(key_id, str) else ""


def _is_for_signatures(entry: Mapping[str, Any]) -> bool:
    """Return whether the key is meant for signatures. Raises `Unusable`."""
    use, operations = entry.get("use", "sig"), entry.get("key_ops", ["verify"])
    if not isinstance(use, str):
        raise Unusable("use is not a text")
    if not isinstance(operations, list):
        raise Unusable("key_ops is not a list")
    return use == "sig" and "verify" in operations


def _of_jwk(entry: Mapping[str, Any], *, allows_secrets: bool) -> VerificationKey:
    """Return the key. Raises `Unusable`."""
    key_id, named = entry.get("kid", ""), entry.get("alg")
    if not isinstance(key_id, str):
        raise Unusable("kid is not a text")
    # A private key would verify tokens, too, but it has been published.
    if "d" in entry:
        raise Unusable("a private key")
    if entry.get("kty") == "oct" and not allows_secrets:
        raise Unusable("a secret, which must not be published")
    try:
        key = PyJWK(dict(entry)).key
    except Exception as error:
        # Whatever the library raises about data that it does not expect. Its texts quote the key.
        raise Unusable(f"it cannot be read ({type(error).__name__})") from None
    algorithms = _algorithms(key)
    if named is not None:
        algorithms = tuple(each for each in algorithms if each == named)
    if not algorithms:
        raise Unusable("too weak, or of a type or for an algorithm that no token may have")
    return VerificationKey(key_id, key, algorithms)


def _algorithms(key: object) -> tuple[str, ...]:
    """Return the algorithms of a key of this type; none if the key is too weak."""
    match key:
        case bytes():
            return _BY_SECRET if len(key) >= LEAST_SECRET else ()
        case RSAPublicKey():
            return _BY_RSA if key.key_size >= _LEAST_RSA_BITS else ()
        case EllipticCurvePublicKey():
            name = _BY_CURVE.get(key.curve.name)
            return () if name is None else (name,)
        case Ed25519PublicKey() | Ed448PublicKey():
            return ("EdDSA",)
        case _:
            return ()


def _of_pem(text: bytes) -> Iterable[VerificationKey]:
    try:
        keys: list[Any] = []
        if _CERTIFICATE in text:
            keys += [each.public_key() for each in load_pem_x509_certificates(text)]
        for part in text.split(_PUBLIC)[1:]:
            keys.append(load_pem_public_key(_PUBLIC + part))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Unusable(f"not a public key: {error}") from None
    if not keys:
        raise Unusable("only public keys and certificates verify tokens; this is another kind")
    for key in keys[:_MOST_KEYS]:
        algorithms = _algorithms(key)
        if not algorithms:
            raise Unusable("a key is too weak, or of a type that signs no tokens")
        yield VerificationKey("", key, algorithms)
