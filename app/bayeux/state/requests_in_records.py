"""Outstanding requests in the records of their sessions, for releases that read them there.

The store has them apart as well, see `kept_requests`. So this is only for a store that an older
release may open again.
"""

from collections.abc import Callable, Iterable, Sequence

from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.feature_records import record_of, with_record, without_record
from holdfast.delivery.basics.session_states import GONE
from holdfast.delivery.requests.outstanding import Requests
from holdfast.delivery.requests.request import Request
from holdfast.delivery.requests.stored_fields import REPLIED


class _Recorded:
    """The record of a session with outstanding requests."""

    __slots__ = ("requests",)

    def __init__(self, requests: Sequence[Request[Session]]) -> None:
        self.requests = requests


def requests_in_record(session: Session) -> list[Json]:
    """Return the requests for the record of the session. In the newest layout there are none."""
    recorded = record_of(session.records, _Recorded)
    return [] if recorded is None else [_to_json(each) for each in recorded.requests]


def record_requests(requests: Requests[Session], save: Callable[[Session], None]) -> None:
    """Let the records of sessions contain their requests. `save` stores a session that changed."""

    def changed(session: Session) -> None:
        if not session.is_durable or session.state in GONE:
            return
        # The store gets the record before the end of such a request: a process that reads both
        # does not take it for outstanding.
        outstanding = [each for each in requests.outstanding_of(session) if not each.is_leaving]
        if outstanding:
            session.records = with_record(session.records, _Recorded(outstanding))
        else:
            session.records = without_record(session.records, _Recorded)
        save(session)

    requests.changed = changed


def record_again(
    requests: Requests[Session], sessions: Iterable[Session], save: Callable[[Session], None]
) -> None:
    """Store restored sessions again whose records had requests, with those that they have now.

    Otherwise `stop_recording` would not know these records, and their requests would rise again at
    each start, although they have ended.
    """
    for session in sessions:
        (requests.changed or save)(session)


def stop_recording(
    requests: Requests[Session], sessions: Iterable[Session], save: Callable[[Session], None]
) -> None:
    """Remove the requests from the records of sessions."""
    requests.changed = None
    for session in sessions:
        if record_of(session.records, _Recorded) is not None:
            session.records = without_record(session.records, _Recorded)
            save(session)


def _to_json(request: Request[Session]) -> Json:
    # By their order, `kept_requests` recognises who replied.
    spoken = sorted(request.spoken, key=lambda key: (request.spoken[key] is not REPLIED, key))
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
        "spoken": spoken,
        "timeout_ms": request.timeout_ms,
    }
