"""The errors of the client, and the exception with which a callback refuses a message.

ClientError
├── ReplyError        the server refused a message
│   └── RequestFailed     a request ended without a reply
├── ConnectionLost    the server may or may not have accepted a message
├── NotConnected      there was no connection in time
├── TokenFailed       the function for tokens raised an exception
├── OutboxFull        the outbox has no room
└── SessionEnded      the server has ended the session for good
    └── SessionTaken      another client has taken the session over
Refuse                for callbacks: the verdict on a message
"""

import logging
import re
from collections.abc import Mapping
from typing import Any

from holdfast.client.advice import on_reply
from holdfast.client.wire import part_of

# The error of a message whose session another client has.
_TAKEN = "session_taken"
# The longest text of a verdict that is taken from an exception.
_MOST_TEXT = 1000
# The codes, and those below them, after which the server takes later messages back.
_RETURNING = ("user.update.holdback", "communication")
# The code for what a callback did not expect.
UNEXPECTED = "user.update.internalError"
_CODE = re.compile(r"(user|communication)(\.[A-Za-z0-9_-]+)*")
_log = logging.getLogger(__name__)


class ClientError(Exception):
    """The base of all errors of the client."""


class ReplyError(ClientError):
    """The server refused a message; `code` is a number such as 403.

    `see` is the URL at which the server explains the error; empty if it has named none.
    """

    def __init__(self, reply: Mapping[str, Any]) -> None:
        error = str(reply.get("error") or "500::unknown")
        code, _, rest = error.partition(":")
        arguments, _, self.text = rest.rpartition(":")
        self.see = str(part_of(reply, "ext", "see") or "")
        self.code = int(code) if code.isdigit() else 500
        self.arguments = tuple(arguments.split(",")) if arguments else ()
        self.reply = reply
        # The error without what to do about it.
        self.said = f"{reply.get('channel')}: {error}"
        advice = on_reply(self.text, self.arguments)
        super().__init__(f"{self.said}: {advice}" if advice else self.said)

    def __str__(self) -> str:
        return self.with_place(str(self.args[0]))

    def with_place(self, text: str) -> str:
        """Return a text about this error, with where the documentation explains it."""
        return f"{text}; see {self.see}" if self.see else text


class RequestFailed(ReplyError):
    """A request ended without a reply; `refusal` is what its last responder said, if it refused."""

    def __init__(self, reply: Mapping[str, Any]) -> None:
        super().__init__(reply)
        code, text = part_of(reply, "data", "code"), part_of(reply, "data", "message")
        self.refusal = None if code is None else Refuse(str(code), str(text or ""))
        if self.refusal is not None:
            self.said = f"{self.said}: {self.refusal}"
            self.args = (self.said,)


class ConnectionLost(ClientError):
    """The connection failed after a message was sent and before its reply arrived."""


class NotConnected(ClientError):
    """The server could not be reached in time."""


class TokenFailed(ClientError):
    """The program's function for tokens raised an exception; the client calls it again later."""


class OutboxFull(ClientError):
    """The outbox has its maximum number of messages."""


class SessionEnded(ClientError):
    """The server has ended the session, and the client must not return."""


class SessionTaken(SessionEnded):
    """Another client has taken the named session over, so this one must not return."""


class Refuse(Exception):
    """Raise it in a callback to refuse a message with an error code, listed or of your own.

    With a code of `communication`, `delay_s` sets the pause until the next attempt.
    """

    def __init__(self, code: str, text: str = "", *, delay_s: float | None = None) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text
        self.delay_s = delay_s

    def __str__(self) -> str:
        return f"{self.code}: {self.text}" if self.text else self.code

    @property
    def returns_others(self) -> bool:
        """Whether the server takes back later messages without a verdict."""
        return any(self.code == each or self.code.startswith(f"{each}.") for each in _RETURNING)

    def verdict(self, seq: int) -> dict[str, Any]:
        """Return the verdict on the message with this number, as it is sent."""
        verdict: dict[str, Any] = {"seq": seq, "errorCode": self.code, "message": self.text}
        if self.delay_s is not None:
            verdict["delay"] = round(self.delay_s * 1000)
        return verdict


def end_because_of(cause: Exception | None) -> SessionEnded:
    """Return the error that says why the server has ended the session for good."""
    if isinstance(cause, ReplyError) and cause.text == _TAKEN:
        return SessionTaken(f"another client has taken the session over ({cause})")
    return SessionEnded("the server ended the session" if cause is None else str(cause))


def refusal_for(error: Exception) -> Refuse:
    """Return what to say of a message whose callback raised this."""
    if isinstance(error, Refuse):
        if not _CODE.fullmatch(error.code):
            _log.warning(
                "%r is no error code, so the server takes it for %s: write user or communication, "
                "and words behind dots, such as user.order.quantity",
                *(error.code, UNEXPECTED),
            )
        return error
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return Refuse(UNEXPECTED, text[:_MOST_TEXT])
