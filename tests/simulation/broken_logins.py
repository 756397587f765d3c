"""Servers that are broken where clients log in, renew their logins, and have rights."""

from contextlib import ExitStack
from dataclasses import replace as changed
from math import inf
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import jwt

from holdfast.bayeux.rights import Rights
from holdfast.bayeux.wire.login import Login
from holdfast.login import tokens
from holdfast.login.extension import Logins
from tests.simulation.breaking import by_name, nothing, replace


def tokens_with_any_seal_are_good(stack: ExitStack) -> None:
    def claims(token: str, *_: object) -> Any:
        return jwt.decode(token, options={"verify_signature": False})

    replace(stack, tokens, "_claims", claims)


def names_of_others_are_free(stack: ExitStack) -> None:
    replace(stack, Rights, "check_name", nothing)


def rights_of_tokens_end_with_their_server(stack: ExitStack) -> None:
    of_json = Login.of_json

    def without(kept: Any) -> Login:
        return changed(of_json(kept), groups=frozenset(), rights=())

    replace(stack, Login, "of_json", without)


def renewed_logins_end_with_their_server(stack: ExitStack) -> None:
    """The next one has the login of the handshake."""
    renew = Logins.renew

    deaf = SimpleNamespace(count_login=nothing, notice=nothing, reauthorize=nothing)

    def unstored(self: Logins, *parts: Any) -> None:
        with patch.object(self, "_server", deaf):
            renew(self, *parts)

    replace(stack, Logins, "renew", unstored)


def ended_logins_prove_who_asks(stack: ExitStack) -> None:
    """A client whose login ended while the server was down is served until somebody looks at it."""
    still_proves = Logins.still_proves

    def always(self: Logins, identity: Any, *parts: Any) -> bool:
        login = identity.login
        identity.login = login and changed(login, expires_s=inf)
        try:
            return still_proves(self, identity, *parts)
        finally:
            identity.login = login

    replace(stack, Logins, "still_proves", always)


def logins_never_end(stack: ExitStack) -> None:
    replace(stack, Logins, "end_due", nothing)


BUILDS_OF_LOGINS = by_name(
    tokens_with_any_seal_are_good,
    names_of_others_are_free,
    rights_of_tokens_end_with_their_server,
    renewed_logins_end_with_their_server,
    ended_logins_prove_who_asks,
    logins_never_end,
)
