"""What to do about errors: a sentence for each that people meet."""

from collections.abc import Sequence
from typing import Final

# By the texts behind the codes of replies.
_ON_REPLIES: Final = {
    "channel_invalid": "write a channel such as /orders/7",
    "subscription_invalid": "write a channel such as /orders/7, or a pattern such as /orders/**",
    "no_responders": "nobody responds on this channel; start a responder",
    "timeout": "no reply came in time; set a longer timeout",
    "destination_unknown": "no session has this name now; force_queuing lets messages wait",
    "budget_exceeded": "try again later, or more slowly",
    "handshake_denied": "the token or the password is wrong or expired; the log of the server "
    "says which",
    "login_denied": "the token is expired, or of another subject; the log of the server says which",
    "delivery_invalid": "the server does not know this option, or not with this value",
    "store_unavailable": "try again later, with the same key if the error says unknown",
    "session_name_denied": "a session name begins with the subject that logs in, such as joe/1",
    "message_too_large": "send less, or raise max_message_size on the server",
    "request_too_large": "send less, or raise max_request_size on the server",
    "host_unknown": "use an address of the server, or add this name to its host_name",
    "origin_denied": "add the origin of the page to allow_origin on the server",
}
# By arguments of errors, whatever the text.
_ON_ARGUMENTS: Final = {
    "no_login": "this server has no login, and knows only operators' tokens: leave the token out, "
    "or configure a login",
    "no_credentials": "this server has a login: give token, or credentials",
}
# By parts of the texts of failures to reach a server.
_ON_CONTACT: Final = {
    "HTTP 404": "no Bayeux server is at this path: Holdfast has /cometd",
    "HTTP 405": "no Bayeux server is at this path: Holdfast has /cometd",
    "WRONG_VERSION_NUMBER": "no TLS is spoken there: write http:// instead of https://",
    "CERTIFICATE_VERIFY_FAILED": "the certificate is of another host, or its authority is unknown",
    "Cannot connect": "is a server running there? holdfast serve starts one",
}


def on_reply(text: str, arguments: Sequence[str]) -> str | None:
    """Return what to do about a refusal."""
    of_arguments = (_ON_ARGUMENTS[each] for each in arguments if each in _ON_ARGUMENTS)
    return next(of_arguments, _ON_REPLIES.get(text))


def on_contact(error: object) -> str:
    """Return the failure with what to do about it."""
    said = str(error)
    advice = next((_ON_CONTACT[part] for part in _ON_CONTACT if part in said), None)
    return f"{said}: {advice}" if advice else said
