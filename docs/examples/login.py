"""A login that is there already: the session cookie of a Flask application says who a user is.

Flask and this server share the secret that signs the cookie, and the host that it is sent to. It
runs from the top of the source tree:

    FLASK_SECRET_KEY=... .venv/bin/holdfast serve --extension docs.examples.login:install
"""

import base64
import hashlib
import hmac
import json
import os
import time
import zlib

from app.bayeux.codec import Json
from app.bayeux.rights import Denial, SecurityPolicy
from app.bayeux.server import Bayeux
from app.bayeux.services import Call
from app.bayeux.sessions import Session

COOKIE = "session"
# Where the application has put the name of the user: `flask.session["user"] = "ada"`.
FIELD = "user"
# Flask's PERMANENT_SESSION_LIFETIME.
LONGEST_S = 31 * 24 * 3600
LARGEST = 64 * 1024


class Logins:
    """Reads what Flask signs: `payload.timestamp.signature`, each in URL-safe Base64."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"cookie-session", hashlib.sha1)

    def user(self, cookie: str, now_s: float) -> str | None:
        """The user whose cookie this is; None if it is not from Flask, too old, or a guest's."""
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
    """What begins with a dot is compressed; nobody but the application can have signed it."""
    if not payload.startswith("."):
        return _decoded(payload)
    return zlib.decompressobj().decompress(_decoded(payload[1:]), LARGEST)


class Members(SecurityPolicy):
    """Only who is logged in comes in, and under no name but the one of the login."""

    def __init__(self, logins: Logins) -> None:
        self._logins = logins

    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        # Another host of the same domain may have set a cookie of this name: each is tried.
        cookies = session.caller.cookies(COOKIE)
        users = [self._logins.user(cookie, time.time()) for cookie in cookies]
        user = next((user for user in users if user is not None), None)
        if user is None:
            return Denial("not_logged_in", advice={"reconnect": "none"})
        session.attributes = {"user": user}
        return None

    def can_claim(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> Denial | None:
        is_own = (session.attributes or {}).get("user") == subject
        return None if is_own else Denial("not_your_name")


def who_am_i(call: Call) -> None:
    """The name of the login and the address that the login is used from."""
    session = call.session
    user = (session.attributes or {}).get("user", session.subject)
    call.answer({"user": user, "address": session.caller.address})


def install(bayeux: Bayeux) -> None:
    """What `--extension` calls, once, before the server listens."""
    bayeux.rights.policy = Members(Logins(os.environ["FLASK_SECRET_KEY"].encode()))
    bayeux.services.add("/service/whoami", who_am_i)
