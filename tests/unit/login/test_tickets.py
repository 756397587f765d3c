"""Only tickets that the deployment has signed let a URL read, and only until they end."""

import base64
from hashlib import blake2b
from typing import Any

import jwt
import orjson
import pytest

from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.login.tickets import Ticket, Tickets

KEY, OTHER = b"k" * 32, b"o" * 32
LOGIN = Login("ada", LoginMethod.TOKEN, expires_s=2e9)
# Long after the tests, which may begin long after they were collected.
SOON = 1_999_999_000


def sealed(key: bytes = KEY, algorithm: str = "HS256", **changed: Any) -> str:
    """A ticket as the deployment signs it, but for these claims; None leaves one out."""
    own = blake2b(key=key, person=b"ticket", digest_size=32).digest()
    claims = {
        "aud": "holdfast-ticket",
        "exp": SOON,
        "channels": ["/a"],
        "login": LOGIN.to_json(),
        **changed,
    }
    said = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(said, "" if algorithm == "none" else own, algorithm)


def headed(head: object) -> str:
    """A ticket with another head, and the seal of the whole one."""
    text = base64.urlsafe_b64encode(head if isinstance(head, bytes) else orjson.dumps(head))
    return ".".join([text.rstrip(b"=").decode(), *sealed().split(".")[1:]])


def refused_with(text: str) -> ErrorReply:
    with pytest.raises(Refused) as refused:
        Tickets(KEY).read(text)
    return refused.value.error


def test_a_ticket_says_what_was_signed() -> None:
    ticket = Ticket(LOGIN, ["/a", "/b/**"], SOON)
    assert Tickets(KEY).read(Tickets(KEY).signed(ticket)) == ticket
    assert Tickets(KEY).read(sealed()).channels == ["/a"]


@pytest.mark.parametrize(
    "text",
    [
        *(sealed(OTHER), sealed(algorithm="none"), headed({"alg": "HS512"})),
        *(sealed(aud=None), sealed(aud="holdfast"), sealed(exp=None), sealed(exp="soon")),
        *(sealed(channels=None), sealed(login=None), sealed(login={}), sealed(login=7)),
        *(sealed(nbf=SOON + 300), sealed() + "x", sealed() + "." + sealed(), sealed() * 700),
        *(headed({"alg": "none"}), headed({"alg": ["HS256"]}), headed({"alg": "RS256"})),
        *(headed({"alg": "HS256", "b64": False, "crit": ["b64"]}), headed(7), headed(b"[" * 2500)),
        *("", ".", "..", "\ud800.a.b", "\u0661.\u0661.\u0661", "\0.\0.\0"),
    ],
    ids=ascii,
)
def test_a_forged_ticket_is_refused(text: str) -> None:
    assert refused_with(text) is ErrorReply.HANDSHAKE_DENIED


def test_a_ticket_that_has_ended_is_told_from_forged_ones() -> None:
    assert refused_with(sealed(exp=1)) is ErrorReply.TICKET_EXPIRED
    assert refused_with(sealed(OTHER, exp=1)) is ErrorReply.HANDSHAKE_DENIED


def test_the_key_of_tokens_signs_no_tickets() -> None:
    own = jwt.decode(sealed(), options={"verify_signature": False})
    assert refused_with(jwt.encode(own, KEY, "HS256")) is ErrorReply.HANDSHAKE_DENIED


def test_a_ticket_for_very_long_names_is_not_made() -> None:
    with pytest.raises(Refused) as refused:
        Tickets(KEY).signed(Ticket(LOGIN, ["/" + "x" * 200] * 100, SOON))
    assert refused.value.error is ErrorReply.REQUEST_TOO_LARGE
