"""Outstanding requests of durable sessions, as the records of these sessions keep them."""

from collections.abc import Collection

from holdfast.bayeux.codec import Json
from holdfast.bayeux.sessions import Session
from holdfast.delivery.request_states import ReplyMode
from holdfast.delivery.requests import Request, Requests


def reopen(
    requests: Requests[Session], session: Session, kept: Json, now: float, now_ms: int
) -> None:
    """Continue a request of the session that began in an earlier process."""
    deadline_ms = kept["deadline_ms"]
    request = Request(
        requests,
        session,
        kept["channel"],
        kept["reply_to"],
        ReplyMode(kept["mode"]),
        kept["timeout_ms"],
        now=now,
        now_ms=now_ms,
    )
    request.address, request.id = kept["address"], kept["id"]
    request.ends_at = now + max(deadline_ms - now_ms, 0) / 1000
    request.deadline_ms = deadline_ms
    request.is_work, request.replies = kept["is_work"], kept["replies"]
    if kept["call"] is not None:
        channel, id = kept["call"]
        request.call = channel, id
    request.spoken.update(kept["spoken"])
    if kept.get("refusal") is not None:
        code, text = kept["refusal"]
        request.refusal = code, text
    requests.reopen(request, kept["responders"])


def rejoin(requests: Requests[Session], receivers: Collection[Session]) -> None:
    """Let restored messages carry their requests again, which wait for these receivers only."""
    asked = requests.by_message()
    if not asked:
        return
    for receiver in receivers:
        for message in receiver.queue.messages():
            request = asked.get(message.id)
            if request is not None:
                request.enter_again(message)
                # The receiver may have got a copy while queues were restored.
                requests.grant(request, [receiver.key])
    requests.end_all_but({each.key for each in receivers})


def to_json(request: Request[Session]) -> Json:
    """Return what is needed to let the request go on in another process."""
    return {
        "address": request.address,
        "call": request.call,
        "channel": request.channel,
        "deadline_ms": request.deadline_ms,
        "id": request.id,
        "is_work": request.is_work,
        "mode": request.mode.value,
        "refusal": request.refusal,
        "replies": request.replies,
        "reply_to": request.reply_to,
        "responders": sorted(request.responders),
        "spoken": sorted(request.spoken),
        "timeout_ms": request.timeout_ms,
    }
