"""The common part of commands that are clients: how they reach a server, log in, and end."""

import asyncio
import getpass
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from holdfast.cli.failures import EXITS, Exit, failed
from holdfast.cli.options import AsJson
from holdfast.cli.output import note
from holdfast.cli.remote import DEFAULT_URL, Server, address
from holdfast.cli.token_times import expired
from holdfast.cli.unreachable import (
    does_not_trust,
    is_nobody_there,
    reason,
    unreachable,
    was_closed,
)
from holdfast.client import (
    Client,
    ClientError,
    ClientState,
    NotConnected,
    ReplyError,
    SessionEnded,
)

# The channels of operators begin so.
_SYSTEM = "/sys/"
_META = "/meta/"
_CONNECT_TIMEOUT_S = 10.0
# Advice on refusals, by the texts behind their codes.
_ADVICE = {
    "no_responders": "nobody responds on this channel; start a responder, such as holdfast respond",
    "timeout": "no reply came within --timeout; set a longer one",
    "destination_unknown": "nobody has this name now; publish --force-queuing lets messages wait "
    "for subjects",
    "handshake_denied": "the user, the password or the token is missing or wrong: give --user and "
    "its password, or --token-file",
    "store_unavailable": "try again later, with the same --key if the error says unknown: the "
    "message may have arrived",
    "session_name_denied": "a --session begins with the name of the user who logs in",
}
# The same for channels that are none, whatever their codes.
# Channels that are none, whatever the codes.
_MISTAKES = ("channel_invalid", "subscription_invalid")
_NO_META = (
    "clients can neither publish nor subscribe to meta channels, which control sessions; choose a "
    "channel such as /orders/7"
)
_DENIED = "handshake_denied"
_LOG_IN = "log in with --token-file or --user, or ask for the right to do this"


@dataclass(frozen=True, slots=True)
class ClientLogin:
    """The server that a command connects to as a client, and how it logs in."""

    url: str = DEFAULT_URL
    token_file: Path | None = None
    user: str | None = None
    as_json: bool = False

    def client(
        self,
        *,
        channels: Sequence[str] = (),
        waits: bool = False,
        **options: Any,  # noqa: ANN401
    ) -> Client:
        """Return a client for these channels; operators' channels need their token.

        If no server is there, it tries again for a while if it `waits`.
        """
        address(self.url)
        for channel in channels:
            # The server would refuse it with a 403, for which there is other advice.
            if channel.startswith(_META):
                raise failed(f"{channel}: {_NO_META}", Exit.USAGE)
        token = credentials = None
        if self.token_file is not None:
            token = Server(token_file=self.token_file).token()
        elif self.user is not None:
            credentials = {"user": self.user, "password": _password(self.user)}
        elif any(channel.startswith(_SYSTEM) for channel in channels):
            named = os.environ.get("HOLDFAST_TOKEN_FILE")
            token = Server(token_file=Path(named) if named else None).token()
        return _CommandClient(
            self.url,
            waits=waits,
            token=token,
            credentials=credentials,
            connect_timeout_s=_CONNECT_TIMEOUT_S,
            on_state=_Contact(),
            **options,
        )

    def _expired(self, error: ReplyError) -> str | None:
        """Return that the token has ended, if the server refused the login for that."""
        if self.token_file is None or error.text != _DENIED:
            return None
        why = expired(self.token_file, time.time())
        return None if why is None else error.with_place(f"{error.said}: {why}")

    def run(self, conversation: Callable[[], Awaitable[None]]) -> bool:
        """Run a conversation; return False if it was interrupted. A failure ends the program."""
        try:
            return asyncio.run(_until_interrupted(conversation))
        except NotConnected as error:
            exit = Exit.UNREACHABLE
            text = unreachable(self.url, error)
        except ReplyError as error:
            is_mistake = error.text in _MISTAKES
            exit = Exit.USAGE if is_mistake else EXITS.get(error.code, Exit.FAILED)
            text = self._expired(error) or refusal(error)
        except SessionEnded as error:
            exit = Exit.FAILED
            text = (
                f"the server has ended the session ({error}): another client took it over, or "
                "this one may not log in again"
            )
        except ClientError as error:
            exit, text = Exit.FAILED, str(error)
        raise failed(text, exit)


def refusal(error: ReplyError) -> str:
    """Return why the server refused a message, and what to do about it."""
    advice = None if "no_login" in error.arguments else _ADVICE.get(error.text)
    if advice is not None:
        return error.with_place(f"{error.said}: {advice}")
    is_explained = error.args[0] != error.said
    if not is_explained and error.code in (401, 403):
        return error.with_place(f"{error.said}: {_LOG_IN}")
    return str(error)


async def _until_interrupted(conversation: Callable[[], Awaitable[None]]) -> bool:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        await conversation()
    except asyncio.CancelledError:
        return False
    return True


class _CommandClient(Client):
    """Says at once that no server is there or answers, which may be the command's end."""

    def __init__(self, url: str, *, waits: bool, **options: Any) -> None:  # noqa: ANN401
        super().__init__(url, **options)
        self._url = url
        self._waits = waits
        self._is_first_attempt = True

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._is_first_attempt = False
        return self

    def contact_failed(self, error: Exception) -> None:
        """Report the failure of the first attempt. Raises `NotConnected` to give up."""
        is_first, self._is_first_attempt = self._is_first_attempt, False
        if not is_first or not (is_nobody_there(error) or was_closed(error)):
            return
        if not self._waits or does_not_trust(error):
            raise NotConnected(str(error)) from error
        note(
            f"{self._url} cannot be reached ({reason(error)}); trying again for "
            f"{_CONNECT_TIMEOUT_S:g} s"
        )


class _Contact:
    """Tells when the server is lost, and when it is back."""

    def __init__(self) -> None:
        self._is_lost = False

    def __call__(self, state: ClientState) -> None:
        if state is ClientState.DISCONNECTED and not self._is_lost:
            self._is_lost = True
            note("The connection is lost; trying again")
        elif state is ClientState.CONNECTED and self._is_lost:
            self._is_lost = False
            note("Connected again")


def _password(user: str) -> str:
    password = os.environ.get("HOLDFAST_PASSWORD")
    if password is not None:
        return password
    if not sys.stdin.isatty():
        raise typer.BadParameter(
            "there is no terminal to ask for the password: set HOLDFAST_PASSWORD"
        )
    return getpass.getpass(f"Password of {user}: ")


def _login(
    as_json: AsJson = False,
    url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            # The administration may be elsewhere.
            envvar=["HOLDFAST_CLIENT_URL", "HOLDFAST_URL"],
            help="The server's URL for clients, or unix:PATH.",
        ),
    ] = DEFAULT_URL,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with a token to log in with; for channels below /sys/, admin-token in the "
            "data directory is enough."
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Log in with the password in HOLDFAST_PASSWORD, or ask for it."
        ),
    ] = None,
) -> ClientLogin:
    """Server and login"""
    if token_file is not None and user is not None:
        raise typer.BadParameter("give either --token-file or --user, not both")
    return ClientLogin(url, token_file, user, as_json)


AsClient = Annotated[ClientLogin, _login]
Session = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Name of the session: joe/1 outlives the command, joe does not.",
    ),
]
Count = Annotated[
    int | None, typer.Option("--count", "-n", min=1, help="End after this number of messages.")
]
