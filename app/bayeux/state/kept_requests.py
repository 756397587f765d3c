"""Outstanding requests, which continue after a restart."""

from collections.abc import Collection, Mapping

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
from holdfast.delivery.requests.stored_fields import REPLIED, SILENT, refusal_of, responder_of

# What an unreadable record raises.
_UNREADABLE = (LookupError, TypeError, ValueError)


def reopen_all(
    state: ServerState, fields: Mapping[str, bytes], now: float, *, are_kept: bool = True
) -> None:
    """Continue the requests of an earlier process. Their sessions must be restored already.

    Args:
        are_kept: Whether the store has them.
    """
    if state.requests.elsewhere is not None:
        fields = state.requests.elsewhere.reopen(fields, now, are_kept=are_kept)
    said: dict[str, dict[str, bytes]] = {}
    for field, value in fields.items():
        address, responder = responder_of(field)
        said.setdefault(address, {})[responder] = value
    requesters = {each.key: each for each in state.sessions if each.is_durable is are_kept}
    left: dict[str, bytes] = {}
    for address, spoken in said.items():
        kept = spoken.pop("", None)
        try:
            requester = None if kept is None else requesters.get(orjson.loads(kept)["requester"])
            if kept is not None and requester is not None:
                _reopen(
                    state,
                    requester,
                    kept={**orjson.loads(kept), "address": address},
                    spoken=spoken,
                    now=now,
                    is_kept=are_kept,
                )
                continue
        except _UNREADABLE as error:
            state.log.error("request %s is unreadable and ends: %r", address, error)
        # The requester has ended, or the process was killed before it could remove all fields.
        left |= dict.fromkeys((address, *(f"{address} {key}" for key in spoken)), b"")
    if left and are_kept:
        state.store.save_requests(left)


def _reopen(
    state: ServerState,
    session: Session,
    *,
    kept: Json,
    spoken: Mapping[str, bytes],
    now: float,
    is_kept: bool,
) -> None:
    """Continue a request of the session. `spoken` is what responders said, by name."""
    deadline_ms, now_ms = kept["deadline_ms"], state.node.now_ms()
    request = Request(
        state.requests,
        session,
        channel=kept["channel"],
        reply_to=kept["reply_to"],
        mode=ReplyMode(kept["mode"]),
        timeout_ms=kept["timeout_ms"],
        now=now,
        now_ms=now_ms,
    )
    request.address, request.id = kept["address"], kept["id"]
    request.ends_at = now + max(deadline_ms - now_ms, 0) / 1000
    request.deadline_ms = deadline_ms
    request.is_work, request.is_kept = kept["is_work"], is_kept
    if kept["call"] is not None:
        channel, id = kept["call"]
        request.call = channel, id
    for key, said in spoken.items():
        _hear(request, key, said)
    state.requests.reopen(request, kept["responders"])


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
    if requests.elsewhere is not None:
        requests.elsewhere.rejoin(receivers)
    asked = requests.by_message()
    if not asked:
        return
    for receiver in receivers:
        for message in receiver.queue.messages():
            request = asked.get(message.id)
            if request is not None:
                request.enter_again(message)
                if may_answer(receiver, message):
                    # It may have got a copy while queues were restored.
                    requests.grant(request, [receiver.key])
    requests.end_all_but({each.key for each in receivers})
