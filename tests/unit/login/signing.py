"""Keys and tokens for tests, made in each run."""

import time
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

SECRET = b"a secret of more than thirty-two bytes, known to both"


@cache
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def pem(key: Any) -> bytes:
    """The public key, as a file has it."""
    text: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return text


def jwk(key: Any, **more: Any) -> dict[str, Any]:
    """The public key, as a key set has it."""
    for kind in (RSAAlgorithm, ECAlgorithm, OKPAlgorithm):
        try:
            return {**kind.to_jwk(key.public_key(), as_dict=True), **more}
        except (TypeError, AttributeError, jwt.PyJWTError):
            continue
    raise AssertionError(key)


def token(
    key: Any = SECRET, algorithm: str | None = "HS256", kid: str | None = None, **claims: Any
) -> str:
    """A token that is valid for an hour, unless the claims say otherwise."""
    said = {"sub": "ada", "iat": int(time.time()), "exp": int(time.time()) + 3600, **claims}
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(said, key, algorithm, headers=None if kid is None else {"kid": kid})
