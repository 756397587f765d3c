"""Uses an existing login: the session cookie of a Flask application identifies the user.

Flask and this server share the secret that signs the cookie, and the host that it is sent to. Over
TLS, name the cookie `__Host-session`, here and in Flask's SESSION_COOKIE_NAME: browsers accept this
prefix only from this host, so that no other host of the domain can set such a cookie.
Run the example from the top of the source tree:

    FLASK_SECRET_KEY=... .venv/bin/holdfast serve --extension docs.examples.login:install
"""

import base64
import hashlib
import hmac
import json
import os
import time
import zlib

from holdfast import (
    Denial,
    Json,
    SecurityPolicy,
    ServerApi,
    ServiceCall,
    SessionApi,
)

COOKIE = "session"
# The field with the user's name, as set by `flask.session["user"] = "ada"`.
FIELD = "user"
# Flask's PERMANENT_SESSION_LIFETIME.
LONGEST_S = 31 * 24 * 3600
LARGEST = 64 * 1024


class Logins:
    """Reads cookies that Flask signed: `payload.timestamp.signature`, each in URL-safe Base64."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"cookie-session", hashlib.sha1)

    def user(self, cookie: str, now_s: float) -> str | None:
        """The cookie's user; None if Flask did not sign it, it is too old, or it is a guest's."""
        signed, _, signature = cookie.rpartition(".")
        payload, _, timestamp = signed.rpartition(".")
        try:
            right = hmac.digest(self._key, signed.encode("ascii"), hashlib.sha1)
            if not hmac.compare_digest(right, _decoded(signature)):
                return None
            age_s = now_s - int.from_bytes(_decoded(timestamp), "big")
            user = json.loads(_unpacked(payload)).get(FIELD)
        except (ValueError, AttributeError, zlib.error):
            return None
        return user if isinstance(user, str) and 0 <= age_s <= LONGEST_S else None


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _unpacked(payload: str) -> bytes:
    """Decode a payload, which is compressed if it begins with a dot. Its signature is checked."""
    if not payload.startswith("."):
        return _decoded(payload)
    return zlib.decompressobj().decompress(_decoded(payload[1:]), LARGEST)


class Members(SecurityPolicy):
    """Admits only logged-in users, each under the name of the login only."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins

    def can_handshake(self, session: SessionApi, handshake: Json) -> Denial | None:
        # Another host of the same domain may have set cookies of this name. Unsigned ones are
        # ignored. Of two logins, one may be an attacker's own, so neither is accepted.
        cookies = session.caller.cookies(COOKIE)
        users = {self._logins.user(cookie, time.time()) for cookie in cookies} - {None}
        if len(users) != 1:
            return Denial("not_logged_in", advice={"reconnect": "none"})
        user = users.pop()
        session.attributes = {"user": user}
        return None

    def can_claim(
        self, session: SessionApi, subject: str, number: int, handshake: Json
    ) -> Denial | None:
        is_own = (session.attributes or {}).get("user") == subject
        return None if is_own else Denial("not_your_name")


def who_am_i(call: ServiceCall) -> None:
    """Reply with the login's user and the client's address."""
    session = call.session
    user = (session.attributes or {}).get("user", session.subject)
    call.answer({"user": user, "address": session.caller.address})


def install(server: ServerApi) -> None:
    """Called once by `--extension`, before the server listens."""
    server.rights.policy = Members(Logins(os.environ["FLASK_SECRET_KEY"].encode()))
    server.services.add("/service/whoami", who_am_i)
