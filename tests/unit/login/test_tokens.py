"""Tokens: who signed them, and what they say."""

import base64
import time
from math import inf
from typing import Any

import orjson
import pytest

from holdfast.bayeux.wire.login import LoginMethod
from holdfast.login.failures import Cause, LoginFailed, Unusable
from holdfast.login.tokens import verify
from holdfast.login.verification_keys import VerificationKeys, read_key_set, read_keys
from holdfast.settings.login import LoginSettings
from tests.unit.login.signing import SECRET, ec_key, ed_key, jwk, pem, rsa_key, token

BY_SECRET = read_keys(SECRET)
BY_RSA = read_keys(pem(rsa_key()))


def taking(**rules: Any) -> LoginSettings:
    """The settings of a login by tokens."""
    return LoginSettings(login_keys="keys", **{f"login_{name}": rules[name] for name in rules})


def cause(text: str, keys: VerificationKeys = BY_SECRET, **rules: Any) -> Cause:
    with pytest.raises(LoginFailed) as failed:
        verify(text, keys, taking(**rules))
    return failed.value.cause


def unsigned(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"x") -> str:
    parts = (orjson.dumps(header), orjson.dumps(claims), signature)
    return ".".join(base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in parts)


def test_a_signed_token_proves_its_subject_groups_id_and_expiry() -> None:
    login = verify(token(groups=["staff"], jti="7"), BY_SECRET, taking())

    assert (login.subject, login.method) == ("ada", LoginMethod.TOKEN)
    assert (login.groups, login.token_id) == (frozenset({"staff"}), "7")
    assert time.time() + 3500 < login.expires_s < inf


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa_key(), "RS256"),
        (rsa_key(), "RS512"),
        (rsa_key(), "PS256"),
        (ec_key(), "ES256"),
        (ed_key(), "EdDSA"),
    ],
)
def test_public_keys_of_each_kind_verify(key: Any, algorithm: str) -> None:
    text = token(key, algorithm, kid="mine")
    key_set = orjson.dumps({"keys": [jwk(key, kid="mine")]})

    assert verify(text, read_keys(pem(key)), taking()).subject == "ada"
    assert verify(text, read_key_set(key_set), taking()).subject == "ada"


def test_a_token_without_signature_is_refused() -> None:
    claims = {"sub": "ada", "exp": int(time.time()) + 60}

    for name in ("none", "None", "NONE", "", None):
        assert cause(unsigned({"alg": name}, claims)) is Cause.ALGORITHM
    assert cause(token(None, "none")) is Cause.MALFORMED


def test_a_token_signed_with_the_text_of_a_public_key_is_refused() -> None:
    """Key confusion: the attacker signs with the text of the public key, as if it were a secret."""
    import hashlib
    import hmac

    text = unsigned({"alg": "HS256"}, {"sub": "ada", "exp": int(time.time()) + 60})
    signed = text.rpartition(".")[0]
    mac = hmac.digest(pem(rsa_key()), signed.encode(), hashlib.sha256)
    forged = f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"

    assert cause(forged, BY_RSA) is Cause.ALGORITHM


def test_the_key_decides_on_the_algorithm_and_not_the_token() -> None:
    assert cause(token(ec_key(), "ES256"), BY_RSA) is Cause.ALGORITHM
    only = read_key_set(orjson.dumps({"keys": [jwk(rsa_key(), alg="RS256")]}))
    assert cause(token(rsa_key(), "RS512"), only) is Cause.ALGORITHM


def test_a_key_in_the_head_of_a_token_is_ignored() -> None:
    import jwt

    mine = ec_key()
    headers = {"jwk": jwk(mine), "jku": "https://evil.example/keys", "x5u": "http://127.0.0.1/"}
    claims = {"sub": "ada", "exp": int(time.time()) + 60}
    forged = jwt.encode(claims, mine, "ES256", headers=headers)
    other = read_keys(pem(rsa_key()))

    assert cause(forged, other) is Cause.ALGORITHM


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": 1}, Cause.EXPIRED),
        ({"exp": None}, Cause.MALFORMED),
        ({"exp": "soon"}, Cause.MALFORMED),
        ({"exp": True}, Cause.EXPIRED),
        ({"exp": []}, Cause.MALFORMED),
        ({"iat": []}, Cause.MALFORMED),
        ({"nbf": int(time.time()) + 3600}, Cause.TOO_EARLY),
        ({"iat": int(time.time()) + 3600}, Cause.TOO_EARLY),
        ({"sub": None}, Cause.SUBJECT),
        ({"sub": "a/b"}, Cause.SUBJECT),
        ({"sub": "anonymous"}, Cause.SUBJECT),
        ({"sub": "*"}, Cause.SUBJECT),
        ({"jti": "x" * 300}, Cause.MALFORMED),
    ],
)
def test_a_token_with_a_missing_or_wrong_claim_is_refused(
    claims: dict[str, Any], why: Cause
) -> None:
    assert cause(token(**claims)) is why


def test_a_token_may_expire_in_the_distant_future() -> None:
    for ends in (10**18, 10**400):
        login = verify(token(exp=ends), BY_SECRET, taking(leeway=0))
        assert login.expires_s == 253_402_300_799


def test_clocks_may_differ_by_the_leeway() -> None:
    late = token(exp=int(time.time()) - 20)

    assert verify(late, BY_SECRET, taking(leeway=30_000)).subject == "ada"
    assert cause(late, leeway=5_000) is Cause.EXPIRED


def test_a_token_for_another_audience_or_from_another_issuer_is_refused() -> None:
    mine: dict[str, Any] = {"audience": ["push", "chat"], "issuer": "https://id.example"}
    good = token(aud=["push", "other"], iss="https://id.example")

    assert verify(good, BY_SECRET, taking(**mine)).subject == "ada"
    assert cause(token(aud="shop", iss="https://id.example"), **mine) is Cause.AUDIENCE
    assert cause(token(iss="https://id.example"), **mine) in (Cause.AUDIENCE, Cause.MALFORMED)
    assert cause(token(aud="push", iss="https://evil.example"), **mine) is Cause.ISSUER


def test_nested_claims_may_name_subject_and_groups() -> None:
    rules = taking(subject_claim="preferred_username", groups_claim="realm_access.roles")
    text = token(preferred_username="ada.l", realm_access={"roles": ["user", 5, "", "admin"]})

    login = verify(text, BY_SECRET, rules)

    assert login.subject == "ada.l"
    assert login.groups == {"user", "admin"}
    assert verify(token(groups="a b"), BY_SECRET, taking()).groups == {"a", "b"}
    assert verify(token(groups={"a": 1}), BY_SECRET, taking()).groups == frozenset()


def test_a_claim_with_rights_counts_only_if_it_is_configured() -> None:
    rules = taking(rights_claim="https://push.example/rights")
    mine = [{"may": ["subscribe"], "channels": ["/a"]}]
    said: dict[str, Any] = {"https://push.example/rights": mine}
    text = token(**said)

    assert verify(text, BY_SECRET, taking()).rights == ()
    (right,) = verify(text, BY_SECRET, rules).rights
    assert (right.channels, right.denies) == (("/a",), False)
    assert verify(token(), BY_SECRET, rules).rights == ()


@pytest.mark.parametrize("given", ["all", {}, [5], [{"may": ["fly"], "channels": ["/a"]}], 0])
def test_a_token_with_unusable_rights_is_refused(given: object) -> None:
    """What the server does not understand could have been a denial."""
    assert cause(token(rights=given), rights_claim="rights") is Cause.RIGHTS


def test_an_unknown_key_a_wrong_signature_and_missing_keys_are_different_causes() -> None:
    keys = read_key_set(orjson.dumps({"keys": [jwk(ec_key(), kid="one")]}))

    assert cause(token(ec_key(), "ES256", kid="two"), keys) is Cause.UNKNOWN_KEY
    assert cause(token(b"x" * 40)) is Cause.SIGNATURE
    assert cause(token(), VerificationKeys()) is Cause.NO_KEYS


@pytest.mark.parametrize(
    "text", ["", "a.b", "a.b.c.d", "é.b.c", "a" * 20_000, "!.!.!", "e30.e30.e30"]
)
def test_a_text_that_is_no_token_is_refused(text: str) -> None:
    assert cause(text) in (Cause.MALFORMED, Cause.ALGORITHM)


@pytest.mark.parametrize(
    "text",
    [
        b"too short",
        b"{}",
        b'{"keys": 5}',
        b'{"keys": []}',
        b"{nonsense",
        b"-----BEGIN PRIVATE KEY-----\nMC4CAQAw\n-----END PRIVATE KEY-----\n",
        b"-----BEGIN PUBLIC KEY-----\nbm8=\n-----END PUBLIC KEY-----\n",
    ],
)
def test_a_file_without_usable_keys_is_refused(text: bytes) -> None:
    with pytest.raises(Unusable):
        read_keys(text)


def test_secret_and_private_keys_of_a_published_key_set_are_left_out() -> None:
    """Whoever can read a secret can sign with it; so can readers of a private key."""
    secret = {"kty": "oct", "kid": "s", "k": base64.urlsafe_b64encode(SECRET).decode()}
    keys = {"keys": [secret, {**jwk(ec_key(), kid="p"), "d": "AAAA"}, jwk(rsa_key(), kid="r")]}

    assert [key.id for key in read_key_set(orjson.dumps(keys)).keys] == ["r"]
    assert [key.id for key in read_keys(orjson.dumps(keys)).keys] == ["s", "r"]


def test_keys_for_encryption_and_of_unknown_kinds_are_left_out() -> None:
    keys = [jwk(rsa_key(), use="enc"), {"kty": "new"}, 5, jwk(ec_key(), kid="good")]

    assert [key.id for key in read_key_set(orjson.dumps({"keys": keys})).keys] == ["good"]


@pytest.mark.parametrize(
    "header",
    [
        {"alg": ["HS256"]},
        {"alg": {"HS256": 1}},
        {"alg": None},
        {"alg": "HS256", "kid": ["1"]},
        {"alg": "HS256", "crit": 7},
        {"alg": "HS256", "b64": False},
    ],
    ids=str,
)
def test_a_token_with_odd_values_in_its_head_is_refused(header: dict[str, Any]) -> None:
    for keys in (BY_SECRET, BY_RSA):
        cause(unsigned(header, {"sub": "ada", "exp": 2**33}), keys)


@pytest.mark.parametrize(
    "header", [b"[" * 12_000, b'{"a":' * 2_400, b"7", b"[]", b"null", b'"x"', b"\xff", b"1" * 9_000]
)
def test_a_token_whose_head_is_no_json_object_is_malformed(header: bytes) -> None:
    text = base64.urlsafe_b64encode(header).rstrip(b"=").decode()

    assert cause(f"{text}.e30.eA") is Cause.MALFORMED
