"""Verification of JSON Web Tokens (RFC 7519)."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jwt

from holdfast.bayeux.wire.login import Login, LoginMethod, Right
from holdfast.bayeux.wire.terms import is_subject
from holdfast.login.failures import Cause, LoginFailed, Unusable
from holdfast.login.rights_file import read_claim
from holdfast.login.verification_keys import VerificationKey, VerificationKeys
from holdfast.settings.login import LoginSettings

# No proxy lets longer tokens pass in a header.
_LONGEST = 16 * 1024
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_MOST_GROUPS = 1000
_LONGEST_ID = 256
_LONGEST_REASON = 200
# The latest time that tokens may name: 9999-12-31.
_LATEST_S = 253_402_300_799
_CAUSES = (
    (jwt.ExpiredSignatureError, Cause.EXPIRED),
    (jwt.ImmatureSignatureError, Cause.TOO_EARLY),
    (jwt.InvalidAudienceError, Cause.AUDIENCE),
    (jwt.InvalidIssuerError, Cause.ISSUER),
    (jwt.InvalidSignatureError, Cause.SIGNATURE),
    (jwt.InvalidAlgorithmError, Cause.ALGORITHM),
)


def looks_like_token(text: object) -> bool:
    """Return whether the text has the form of a token; other extensions have other tokens."""
    return isinstance(text, str) and len(text) <= _LONGEST and _FORM.fullmatch(text) is not None


def key_id_of(token: str) -> object:
    """Return the id of the key that the token names, unverified. Raises `LoginFailed`."""
    return _header(token).get("kid")


def subject_in(token: str, settings: LoginSettings) -> str | None:
    """Return the subject that the token names, unverified, or None if it names none."""
    if not looks_like_token(token):
        return None
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
        return None
    subject = _claim(claims, settings.login_subject_claim)
    return str(subject) if is_subject(subject) else None


def verify(token: str, keys: VerificationKeys, settings: LoginSettings) -> Login:
    """Return the login that the token proves. Raises `LoginFailed`."""
    header = _header(token)
    if not keys.keys:
        raise LoginFailed(Cause.NO_KEYS)
    key_id, algorithm = header.get("kid"), header.get("alg")
    if not keys.knows(key_id):
        raise LoginFailed(Cause.UNKNOWN_KEY)
    candidates = keys.matching(key_id, algorithm)
    if not candidates:
        raise LoginFailed(Cause.ALGORITHM)
    failure = LoginFailed(Cause.SIGNATURE)
    for key in candidates:
        try:
            return _login(_claims(token, key, settings), settings)
        except LoginFailed as failed:
            if failed.cause is not Cause.SIGNATURE:
                raise
            failure = _explained(failed, token, key, settings)
    raise failure


def _explained(
    failed: LoginFailed, token: str, key: VerificationKey, settings: LoginSettings
) -> LoginFailed:
    """Return the failure, with a hint if the token was signed with all bytes of the key file."""
    if key.untrimmed:
        try:
            _claims(token, replace(key, key=key.untrimmed), settings)
        except LoginFailed as other:
            if other.cause is Cause.SIGNATURE:
                return failed
        return LoginFailed(Cause.UNTRIMMED)
    return failed


def _header(token: str) -> Mapping[str, Any]:
    if not looks_like_token(token):
        raise LoginFailed(Cause.MALFORMED)
    try:
        return jwt.get_unverified_header(token)
    except jwt.PyJWTError:
        raise LoginFailed(Cause.MALFORMED) from None


def _claims(token: str, key: VerificationKey, settings: LoginSettings) -> Mapping[str, Any]:
    try:
        return jwt.decode(
            token,
            key.key,
            algorithms=list(key.algorithms),
            audience=settings.login_audience or None,
            issuer=settings.login_issuer or None,
            leeway=settings.login_leeway / 1000,
            # A token without an end could only be revoked.
            options={"require": ["exp"], "verify_aud": bool(settings.login_audience)},
        )
    except jwt.PyJWTError as error:
        cause = next((each for kind, each in _CAUSES if isinstance(error, kind)), Cause.MALFORMED)
        raise LoginFailed(cause) from None
    except (ValueError, TypeError, OverflowError):
        raise LoginFailed(Cause.MALFORMED) from None


def _login(claims: Mapping[str, Any], settings: LoginSettings) -> Login:
    subject = _claim(claims, settings.login_subject_claim)
    if not is_subject(subject):
        raise LoginFailed(Cause.SUBJECT)
    token_id, issued = claims.get("jti", ""), claims.get("iat", 0)
    if not isinstance(token_id, str) or len(token_id) > _LONGEST_ID:
        raise LoginFailed(Cause.MALFORMED)
    return Login(
        subject=str(subject),
        method=LoginMethod.TOKEN,
        groups=_groups(_claim(claims, settings.login_groups_claim)),
        expires_s=min(int(claims["exp"]), _LATEST_S) + settings.login_leeway / 1000,
        issued_s=float(min(int(issued), _LATEST_S)),
        token_id=token_id,
        rights=_rights(claims, settings.login_rights_claim),
    )


def _rights(claims: Mapping[str, Any], path: str | None) -> tuple[Right, ...]:
    """Return the token's rights. An unusable one could be a denial, so the login fails."""
    given = _claim(claims, path) if path else None
    if given is None:
        return ()
    try:
        return read_claim(given)
    except Unusable as unusable:
        raise LoginFailed(Cause.RIGHTS, str(unusable)[:_LONGEST_REASON]) from None


def _claim(claims: Mapping[str, Any], path: str) -> object:
    """Return the claim at the path; the names of claims may contain dots, too."""
    if path in claims:
        return claims[path]
    value: object = claims
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def _groups(given: object) -> frozenset[str]:
    """Return the groups: a list of names, or a string of names separated by spaces (OAuth)."""
    names = given.split() if isinstance(given, str) else given
    if not isinstance(names, list):
        return frozenset()
    return frozenset(each for each in names[:_MOST_GROUPS] if isinstance(each, str) and each)
