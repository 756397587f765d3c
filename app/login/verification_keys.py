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
from jwt.exceptions import PyJWTError

from holdfast.login.failures import Unusable

# A shorter secret can be guessed.
LEAST_SECRET = 32
_LEAST_RSA_BITS = 2048
_MOST_KEYS = 64
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


@dataclass(frozen=True, slots=True)
class VerificationKeys:
    """All keys of one source."""

    keys: tuple[VerificationKey, ...] = ()

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
    return VerificationKeys((VerificationKey("", stripped, _BY_SECRET),))


def read_key_set(text: bytes, *, allows_secrets: bool = False) -> VerificationKeys:
    """Read a JWK Set. Keys of unknown types, and for encryption, are left out.

    Secrets in a published set would let anybody sign, so they are left out too. Raises `Unusable`.
    """
    try:
        given = orjson.loads(text)
        entries = given.get("keys", [given]) if isinstance(given, Mapping) else None
    except orjson.JSONDecodeError as error:
        raise Unusable(f"not JSON: {error}") from None
    if not isinstance(entries, list):
        raise Unusable("not a JWK Set: the member keys must be a list")
    found = [
        key
        for entry in entries[:_MOST_KEYS]
        if isinstance(entry, Mapping) and (key := _of_jwk(entry, allows_secrets)) is not None
    ]
    if not found:
        raise Unusable("no key that can verify a token")
    return VerificationKeys(tuple(found))


def _of_jwk(entry: Mapping[str, Any], allows_secrets: bool) -> VerificationKey | None:
    if entry.get("use", "sig") != "sig" or "verify" not in entry.get("key_ops", ["verify"]):
        return None
    is_secret = entry.get("kty") == "oct"
    # A private key would verify tokens, too, but it has been published.
    if "d" in entry or (is_secret and not allows_secrets):
        return None
    try:
        key = PyJWK(dict(entry)).key
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    algorithms = _algorithms(key)
    named = entry.get("alg")
    if named is not None:
        algorithms = tuple(each for each in algorithms if each == named)
    key_id = entry.get("kid", "")
    if not algorithms or not isinstance(key_id, str):
        return None
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
