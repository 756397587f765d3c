"""An unusable key is skipped: it does not break the logins with the keys beside it."""

import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.wire.caller import Caller
from holdfast.login.authenticator import Authenticator, Methods
from holdfast.login.failures import Cause, LoginFailed, Unusable
from holdfast.login.key_sources import KeyUrl, at
from holdfast.login.tokens import verify
from holdfast.login.verification_keys import read_key_set, read_keys
from holdfast.settings.login import LoginSettings
from tests.pages import ROOT
from tests.unit.login.signing import SECRET, ec_key, ed_key, jwk, rsa_key, token

RULES = LoginSettings()


@cache
def good() -> tuple[dict[str, Any], str]:
    """A usable key, and a token that it verifies."""
    return jwk(ec_key(), kid="good"), token(ec_key(), "ES256", kid="good")


def key_set(*entries: object) -> bytes:
    return orjson.dumps({"keys": entries})


UNUSABLE: list[tuple[object, str]] = [
    ({"key_ops": None}, "key_ops is not a list"),
    ({"key_ops": 5}, "key_ops is not a list"),
    ({"key_ops": "verify"}, "key_ops is not a list"),
    ({"use": 5}, "use is not a text"),
    ({"use": None}, "use is not a text"),
    ({"kid": 5}, "kid is not a text"),
    ({"d": "AQAB"}, "a private key"),
    ({"kty": "oct", "k": "AQAB"}, "a secret"),
    ({"kty": "OKP", "crv": "Ed25519", "alg": "none"}, "cannot be read"),
    ({"kty": "EC", "alg": "none"}, "cannot be read"),
    ({"kty": "EC", "alg": ["ES256"]}, "cannot be read"),
    ({"kty": "EC", "alg": "RS256"}, "cannot be read"),
    ({"kty": "EC", "crv": {}}, "cannot be read"),
    ({"kty": []}, "cannot be read"),
    ({"kty": "unheard of"}, "cannot be read"),
    ({"x": 5}, "cannot be read"),
    ({"x": "AA"}, "cannot be read"),
]


@pytest.mark.parametrize(("changed", "why"), UNUSABLE)
def test_an_unusable_key_is_skipped_and_named(changed: dict[str, Any], why: str) -> None:
    entry, text = good()
    keys = read_key_set(key_set({**entry, "kid": "odd", **changed}, entry))
    assert verify(text, keys, RULES).subject == "ada"
    assert [each.id for each in keys.keys] == ["good"]
    (skipped,) = keys.skipped
    assert skipped.startswith("key 1")
    assert why in skipped
    assert ("'odd'" in skipped) is ("kid" not in changed)
    with pytest.raises(Unusable, match=why):
        read_key_set(key_set({**entry, **changed}))


@pytest.mark.parametrize("entry", [None, 5, "key", []])
def test_what_is_no_object_is_no_key(entry: object) -> None:
    keys = read_key_set(key_set(entry, good()[0]))
    assert keys.skipped == ("key 1: not an object",)


def test_a_key_for_encryption_is_nothing_that_an_operator_must_know_of() -> None:
    other = {**jwk(rsa_key()), "use": "enc", "alg": "RSA-OAEP"}
    derived = {**good()[0], "key_ops": ["deriveKey"]}
    assert read_key_set(key_set(other, derived, good()[0])).skipped == ()


def test_what_is_said_of_an_unusable_key_is_short_and_has_nothing_of_its_secret() -> None:
    secret = "s" * 50
    entry = {"kty": "oct", "k": secret, "alg": "unheard of", "kid": "k" * 100_000}
    with pytest.raises(Unusable) as caught:
        read_keys(key_set(entry))
    assert secret not in str(caught.value)
    assert len(str(caught.value)) < 200


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(max_size=8)
    | st.sampled_from(
        "sig verify none ES256 HS256 RS256 EdDSA EC RSA oct OKP P-256 P-384 secp256k1 Ed25519"
        f" Ed448 X25519 AQAB {'A' * 43} {'A' * 700}".split()
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
members = st.sampled_from(
    ["kty", "kid", "use", "key_ops", "alg", "crv", "x", "y", "n", "e", "d", "k", "p", "x5c", "oth"]
)
entries = st.builds(
    lambda base, changed, removed: {
        name: value for name, value in {**base, **changed}.items() if name not in removed
    },
    st.sampled_from([*(jwk(key(), kid="odd") for key in (ec_key, ed_key, rsa_key)), {}]),
    st.dictionaries(members, values, max_size=4),
    st.sets(members, max_size=2),
)


@cache
def tokens() -> list[str]:
    """Tokens of all kinds, for which any key of the set may be tried."""
    signed = [(SECRET, "HS256"), (ec_key(), "ES256"), (rsa_key(), "RS256"), (ed_key(), "EdDSA")]
    return [token(*each, kid=key_id) for each in signed for key_id in ("odd", "", None)]


@pytest.mark.slow
@given(st.lists(entries | values, max_size=4), st.integers(0, 4))
async def test_whatever_is_in_a_key_set_logins_succeed_or_fail_and_nothing_else(
    others: list[object], place: int
) -> None:
    entry, text = good()

    async def fetch(_: str) -> bytes:
        return key_set(*others[:place], entry, *others[place:])

    async def rest(_: float) -> None:
        """Take no time."""

    source = KeyUrl(at("https://id.example.org/keys"), fetch, lambda: 1.0, rest)
    authenticator = Authenticator(Methods(RULES, keys=source))

    async def login(shown: str) -> str:
        handshake = {"ext": {"authentication": {"token": shown}}}
        return (await authenticator.authenticate(handshake, Caller(), lambda: True)).subject

    assert await login(text) == "ada"
    for other in tokens():
        with suppress(LoginFailed):
            assert await login(other) == "ada"


@given(st.binary(max_size=200) | values.map(orjson.dumps) | st.lists(entries).map(orjson.dumps))
def test_any_text_is_a_key_set_or_unusable(text: bytes) -> None:
    with suppress(Unusable):
        assert read_key_set(text).keys


# The file of a secret


def test_a_newline_behind_a_secret_is_no_part_of_it_and_who_signs_with_it_is_told() -> None:
    keys = read_keys(SECRET + b"\n")
    assert verify(token(SECRET), keys, RULES).subject == "ada"
    for text in (token(SECRET + b"\n"), token(SECRET + b"\n", exp=1)):
        with pytest.raises(LoginFailed, match="the newline or space around the secret") as caught:
            verify(text, keys, RULES)
        assert caught.value.cause is Cause.UNTRIMMED
    with pytest.raises(LoginFailed) as caught:
        verify(token(b"another" * 10), keys, RULES)
    assert caught.value.cause is Cause.SIGNATURE


def test_libraries_can_use_the_key_file_of_the_documentation_as_it_is(tmp_path: Path) -> None:
    """Most of them take all bytes of the file."""
    page = (ROOT / "docs" / "how-to" / "login.md").read_text()
    (command,) = [each for each in page.splitlines() if each.endswith(">data/token-key")]
    (tmp_path / "data").mkdir()
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, timeout=30)
    text = (tmp_path / "data" / "token-key").read_bytes()
    assert verify(token(text), read_keys(text), RULES).subject == "ada"
