"""What an application needs for Holdfast: tokens for its users and for itself, and a publish."""

import logging
import os
import time
from pathlib import Path
from typing import Any

import httpx
import jwt  # PyJWT

URL = os.environ.get("HOLDFAST_URL", "http://127.0.0.1:8080")
KEY = Path(os.environ.get("TOKEN_KEY", "data/token-key")).read_bytes().strip()
COOKIE = "holdfast"
VALID_S = 600
JOBS = "/jobs/orders"

_http = httpx.Client(base_url=URL, timeout=5)


def token_for(subject: str, *groups: str) -> str:
    """Return a token with which a user's pages or a program can log in for ten minutes."""
    now = int(time.time())
    claims = {"sub": subject, "groups": groups, "aud": "push", "iat": now, "exp": now + VALID_S}
    return jwt.encode(claims, KEY, "HS256")


def subject_of(user: object) -> str:
    """Return the subject of a user; no program can have it."""
    return f"user-{user}"


def channel_of(subject: str) -> str:
    """Return the channel on which a user hears of orders."""
    return f"/users/{subject}/orders"


def publish(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Publish as the backend; return a result for each message.

    Raises `httpx.HTTPError` if nothing was published, or if it is unknown what was.
    """
    login = {"Authorization": f"Bearer {token_for('shop', 'backend')}"}
    results: list[dict[str, Any]] = (
        _http.post("/publish", json=messages, headers=login).raise_for_status().json()
    )
    return results


def tell(subject: str, data: object) -> None:
    """Tell a user's pages what was committed; if that fails, the order stands nevertheless."""
    try:
        publish({"channel": channel_of(subject), "data": data})
    except httpx.HTTPError:
        logging.exception("%s was not told %s", subject, data)
