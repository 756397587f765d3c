"""Outstanding requests as the store keeps them: fields of one table.

The field of a request is named by its address. Each responder that has spoken has a field as well,
named by the address and the responder. So an answer costs the same however many responders there
are.
"""

from collections.abc import Mapping
from typing import Any, Final

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.storing import RequestFields
from holdfast.delivery.requests.request import ReplyMode, Request

# What a responder may have said, other than a refusal: it replied, or it will not answer.
REPLIED: Final = b"true"
SILENT: Final = b"null"


def refusal_of(code: str, text: str) -> bytes:
    """Return the value for a responder that refused the request."""
    return to_json([code, text])


def asked(request: Request[Any], responders: list[str]) -> RequestFields:
    """Return the field of a request that these sessions may answer."""
    record = {
        "call": request.call,
        "channel": request.channel,
        "deadline_ms": request.deadline_ms,
        "id": request.id,
        "is_work": request.is_work,
        "mode": request.mode.value,
        "reply_to": request.reply_to,
        "requester": request.requester.key,
        "responders": responders,
        "timeout_ms": request.timeout_ms,
    }
    return {request.address: to_json(record)}


def spoken(request: Request[Any], said: Mapping[str, bytes]) -> RequestFields:
    """Return the fields of responders, with what each said."""
    return {f"{request.address} {key}": what for key, what in said.items()}


def whole(request: Request[Any]) -> RequestFields:
    """Return all fields of a request."""
    return {
        **asked(request, sorted(request.responders)),
        **spoken(request, request.spoken),
    }


def removed(request: Request[Any]) -> RequestFields:
    """Return the removal of all fields of the request."""
    is_for_all = request.mode is ReplyMode.ALL
    # The only reply to a request ends it, so it never has a field.
    named = [key for key, said in request.spoken.items() if is_for_all or said is not REPLIED]
    return {request.address: b"", **spoken(request, dict.fromkeys(named, b""))}


def responder_of(field: str) -> tuple[str, str]:
    """Return the address and the responder, which is empty if this is the field of the request."""
    address, _, key = field.partition(" ")
    return address, key
