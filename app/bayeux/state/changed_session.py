"""A session that changed in this turn, and what the store keeps of it: `stored_form`."""

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.cursors import cursors_of
from holdfast.bayeux.state.former_client import former_client
from holdfast.bayeux.state.requests_in_records import requests_in_record
from holdfast.bayeux.state.subscription_details import lost_subscriptions, qos_of_subscriptions
from holdfast.delivery.basics.node import Node
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.messages.session_record import HoldRecord, SessionRecord
from holdfast.delivery.requests.reply_channels import reply_channel_of
from holdfast.delivery.shared_queues.unclaimed_names import is_unclaimed


class ChangedSession:
    """A session that changed in this turn, and may change again before the turn ends."""

    __slots__ = ("_node", "_session", "key")

    def __init__(self, session: Session, node: Node) -> None:
        self.key = session.key
        self._session = session
        self._node = node

    def record(self) -> SessionRecord:
        return stored_form(self._session, self._node.now_ms())


def stored_form(session: Session, now_ms: int) -> SessionRecord:
    """Return the record of the session to store."""
    terms, identity = session.terms, session.identity
    cursors, replies = cursors_of(session), reply_channel_of(session)
    hold = None if session.dispatcher is None else session.dispatcher.hold_record
    return SessionRecord(
        key=session.key,
        client_id="" if session.is_away else session.client_id,
        browser=identity.browser or "",
        taken_from=list(former_client(session)),
        needs_cookie=identity.needs_cookie,
        is_of_page=identity.is_of_page,
        subject=session.subject,
        number=0 if terms is None else terms.number,
        name=session.name,
        delivery={} if terms is None else terms.to_json(),
        acks=session.queue.settling is SettledBy.BATCH,
        warrant=identity.warrant,
        login=None if identity.login is None else identity.login.to_json(),
        subscriptions=sorted(session.subscriptions),
        subscription_qos={
            name: qos.to_json() for name, qos in qos_of_subscriptions(session).items()
        },
        silent_on=sorted(
            name for name, qos in qos_of_subscriptions(session).items() if not qos.responds
        ),
        lost_subscriptions=list(lost_subscriptions(session)),
        batch=session.queue.batch,
        seq=session.queue.seq,
        hold=HoldRecord()
        if hold is None
        else HoldRecord(
            is_active=False,
            reason=hold.reason,
            until_ms=hold.until,
            who=hold.who,
            since_ms=hold.since,
        ),
        is_given_up=not session.takes_messages,
        timeout_s=0.0 if terms is None else terms.timeout / 1000,
        is_granted=terms is not None and terms.is_granted,
        is_unclaimed=is_unclaimed(session),
        replay_ids=None if cursors is None else cursors.form.has_replay_ids,
        ret="" if replies is None else replies.id,
        requests=requests_in_record(session),
        created_ms=session.created // 1_000_000,
        seen_ms=now_ms,
    )
