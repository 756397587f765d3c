"""Outstanding requests as the store keeps them: fields of one table.

The field of a request is named by its address. Each responder that has spoken has a field as well,
named by the address and the responder. So an answer costs the same however many responders there
are. Fields of a request of another shard, which sessions of this one may answer, have a prefix.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.storing import RequestFields
from holdfast.delivery.requests.request import ReplyMode, Request

# What a responder may have said, other than a refusal: it replied, or it will not answer.
REPLIED: Final = b"true"
SILENT: Final = b"null"
# What the fields of requests of other shards begin with.
OF_OTHERS: Final = "~"


def refusal_of(code: str, text: str) -> bytes:
    """Return the value for a responder that refused the request."""
    return to_json([code, text])


def _name_of(request: Request[Any]) -> str:
    return request.address if request.shard is None else OF_OTHERS + request.address


def asked(request: Request[Any], responders: Iterable[str]) -> RequestFields:
    """Return the field of a request that these sessions may answer."""
    record: dict[str, Any] = {
        "call": request.call,
        "channel": request.channel,
        "deadline_ms": request.deadline_ms,
        "id": request.id,
        "is_work": request.is_work,
        "mode": request.mode.value,
        "reply_to": request.reply_to,
        "requester": request.requester.key,
        "responders": sorted(responders),
        "timeout_ms": request.timeout_ms,
    }
    if request.carried:
        record["carried"] = request.carried.decode()
    return {_name_of(request): to_json(record)}


def spoken(request: Request[Any], said: Mapping[str, bytes]) -> RequestFields:
    """Return the fields of responders, with what each said."""
    if request.shard is not None:
        # That one knows whether a reply counts.
        said = {key: what for key, what in said.items() if what != REPLIED}
    name = _name_of(request)
    return {f"{name} {key}": what for key, what in said.items()}


def responders_of(request: Request[Any]) -> set[str]:
    """Return the responders as they are stored.

    In another shard than the requester's, they are those that have replied, too.
    """
    if request.shard is None:
        return request.responders
    return {*request.responders, *[key for key, said in request.spoken.items() if said == REPLIED]}


def whole(request: Request[Any]) -> RequestFields:
    """Return all fields of a request."""
    return {
        **asked(request, responders_of(request)),
        **spoken(request, request.spoken),
    }


def removed(request: Request[Any]) -> RequestFields:
    """Return the removal of all fields of the request."""
    is_for_all = request.mode is ReplyMode.ALL
    # The only reply to a request ends it, so it never has a field.
    named = [key for key, said in request.spoken.items() if is_for_all or said is not REPLIED]
    return {_name_of(request): b"", **spoken(request, dict.fromkeys(named, b""))}


def responder_of(field: str) -> tuple[str, str]:
    """Return the name of the request and the responder, which is empty if the field is its own."""
    name, _, key = field.partition(" ")
    return name, key
