"""Outstanding requests, which continue after a restart."""

from collections.abc import Collection, Iterator, Mapping

import orjson

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.session_record import SessionRecord
from holdfast.delivery.messages.storing import RequestFields
from holdfast.delivery.requests.outstanding import Requests
from holdfast.delivery.requests.request import ReplyMode, Request
from holdfast.delivery.requests.responders import may_answer
from holdfast.delivery.requests.stored_fields import (
    OF_OTHERS,
    REPLIED,
    SILENT,
    refusal_of,
    responder_of,
    whole,
)

# What an unreadable record raises.
_UNREADABLE = (LookupError, TypeError, ValueError)


def reopen_all(
    state: ServerState, fields: Mapping[str, bytes], now: float, *, are_kept: bool = True
) -> None:
    """Continue the requests of an earlier process. Their sessions must be restored already.

    Args:
        are_kept: Whether the store has them.
    """
    state.requests.now = now
    said: dict[str, dict[str, bytes]] = {}
    for field, value in fields.items():
        name, responder = responder_of(field)
        said.setdefault(name, {})[responder] = value
    requesters = {each.key: each for each in state.sessions if each.is_durable is are_kept}
    left: dict[str, bytes] = {}
    for name, spoken in said.items():
        kept = spoken.pop("", None)
        try:
            record: Json = {} if kept is None else orjson.loads(kept)
            request = _reopened(state, requesters, name, record, now=now) if record else None
            if request is not None:
                request.is_kept = request.is_lasting = are_kept
                for key, what in spoken.items():
                    _hear(request, key, what)
                state.requests.reopen(request, record["responders"])
                continue
        except _UNREADABLE as error:
            state.log.error("request %s is unreadable and ends: %r", name, error)
        # The requester has ended, or the process was killed before it could remove all fields.
        left |= dict.fromkeys((name, *(f"{name} {key}" for key in spoken)), b"")
    if left and are_kept:
        state.store.save_requests(left)


def _reopened(
    state: ServerState, requesters: Mapping[str, Session], name: str, kept: Json, *, now: float
) -> Request[Session] | None:
    """Return a request that goes on; None if its requester has ended."""
    address, far, shard = name.removeprefix(OF_OTHERS), state.requests.elsewhere, None
    requester = requesters.get(kept["requester"])
    if name != address:
        shard = None if far is None else far.shard_of(address)
        requester = None if far is None or shard is None else far.stand_in
    if requester is None:
        return None
    now_ms = state.node.now_ms()
    request = Request(
        state.requests,
        requester,
        channel=kept["channel"],
        reply_to=kept["reply_to"],
        mode=ReplyMode(kept["mode"]),
        timeout_ms=kept["timeout_ms"],
        now=now,
        now_ms=now_ms,
    )
    if shard is not None:
        request.belong_to(shard)
    request.go_on(kept["deadline_ms"], now, now_ms)
    request.address, request.id = address, kept["id"]
    request.is_work = kept["is_work"]
    request.carried = kept.get("carried", "").encode()
    if kept["call"] is not None:
        channel, id = kept["call"]
        request.call = channel, id
    return request


def _hear(request: Request[Session], key: str, said: bytes) -> None:
    """Record what a responder said to the earlier process."""
    if said == REPLIED:
        request.spoken[key] = REPLIED
        request.replies += 1
    else:
        request.spoken[key] = said
        if said != SILENT:
            code, text = orjson.loads(said)
            request.refusal = code, text


def fields_of_all(requests: Requests[Session]) -> RequestFields:
    """Return all fields that the store is to have, to store them again."""
    found: dict[str, bytes] = {}
    for each in requests.all():
        if each.is_durable:
            each.is_kept = True
            found.update(whole(each))
    return found


def passing_fields(requests: Requests[Session]) -> Iterator[RequestFields]:
    """Yield the fields of each request that the store does not have."""
    return (whole(each) for each in requests.all() if not each.is_durable)


def fields_of(record: SessionRecord) -> RequestFields:
    """Return the request fields that an earlier release stored in the record of a session."""
    fields: dict[str, bytes] = {}
    for kept in record.requests:
        address, refusal = kept["address"], kept.get("refusal")
        silent = SILENT if refusal is None else refusal_of(*refusal)
        fields[address] = to_json({**kept, "requester": record.key})
        for place, key in enumerate(kept["spoken"]):
            fields[f"{address} {key}"] = REPLIED if place < kept["replies"] else silent
    return fields


def rejoin(requests: Requests[Session], receivers: Collection[Session]) -> None:
    """Attach restored messages to their requests again, which wait for these receivers only."""
    asked, far = requests.by_message(), requests.elsewhere
    if not asked and far is None:
        return
    for receiver in receivers:
        for message in receiver.queue.messages():
            request = asked.get(message.id)
            if request is None and far is not None:
                request = far.unsaved(message)
            if request is not None:
                request.enter_again(message)
                if may_answer(receiver, message):
                    # It may have got a copy while queues were restored.
                    requests.grant(request, [receiver.key])
    requests.end_all_but({each.key for each in receivers})
