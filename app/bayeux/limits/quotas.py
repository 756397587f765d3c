"""Quotas of addresses and subjects: sessions, subscriptions, topics, and waiting messages.

A message counts for the session in whose queue it waits or, in a shared queue, for its sender. A
message that would exceed a quota is refused with 429. Existing data stays, and other senders are
not affected.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.limits.admission import Admission
from holdfast.bayeux.limits.usage import (
    BYTES,
    SESSIONS,
    SUBSCRIPTIONS,
    TOPICS,
    Payer,
    Usage,
    Usages,
)
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.notices import OVERSPENT, Notices
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.settings import Settings

# Not earlier, because usage shrinks only when sessions end, unsubscribe or fetch their messages.
_RETRY_S = 5.0


class Quotas:
    """The quotas of a server, and their usage."""

    def __init__(
        self,
        options: Settings,
        usages: Usages,
        *,
        shards: int,
        node: Node,
        admission: Admission,
        notices: Notices,
    ) -> None:
        self._options = options
        self._shards = shards
        self._usages = usages
        self._node = node
        self._admission = admission
        self._notices = notices

    def check_session(self, draft: Session) -> None:
        """Check that one more session may be opened. Raises `Refused` before any change."""
        kind = self.used_up(draft)
        if kind:
            raise self._refused(draft, kind, "handshake")

    def used_up(self, session: Session) -> str:
        """Return the quota that forbids one more session, or an empty string."""
        # Clients on this machine are not counted.
        return self._used_up(self._usages.of(session) if session.caller.network else ())

    def used_up_by(self, payer: Payer) -> str:
        """Return the quota that forbids one more session for messages of this sender, or ""."""
        return self._used_up(self._usages.of_payer(payer) if payer.accounts else ())

    def _used_up(self, usages: Sequence[Usage]) -> str:
        limits = self._options
        for usage in usages:
            usage.count(self._node.now_ms())
            parts = self._parts(usage)
            if 0 < limits.quota_sessions <= len(usage.sessions) * parts:
                return SESSIONS
            if 0 < limits.quota_waiting_bytes <= usage.bytes * parts:
                return BYTES
        return ""

    def check_subscriptions(self, session: Session, more: int) -> None:
        """Check that the session may add subscriptions. Raises `Refused` before any change."""
        limits = self._options
        for usage in self._usages.of(session) if session.caller.network else ():
            usage.count(self._node.now_ms())
            parts = self._parts(usage)
            if 0 < limits.quota_subscriptions < (usage.subscriptions + more) * parts:
                raise self._refused(session, SUBSCRIPTIONS, "retry")
            if 0 < limits.quota_waiting_bytes <= usage.bytes * parts:
                raise self._refused(session, BYTES, "retry")

    def _parts(self, usage: Usage) -> int:
        """Return into how many parts the limit is divided: a subject has its clients here."""
        return self._shards if usage.is_divided else 1

    def count_subscriptions(self, session: Session, more: int) -> None:
        """Count new subscriptions at once, because many may come before the next count."""
        for usage in self._usages.of(session):
            usage.subscriptions += more

    def too_much_waits(
        self, session: Session | None, kind: str, outcomes: Sequence[Mapping[str, Any]]
    ) -> Refused:
        """Return the refusal of a message that would have to wait, with all outcomes.

        The session that published it is None if another shard has it, which adds the advice.
        """
        refused = Refused(ErrorReply.BUDGET_EXCEEDED, kind)
        if session is not None:
            refused = self._refused(session, kind, "retry")
        if outcomes:
            refused.ext = {"delivery": {"destinations": outcomes}}
        return refused

    def too_many_topics(self, session: Session) -> Refused:
        """Return the refusal of a message that would create another topic."""
        return self._refused(session, TOPICS, "retry")

    def _refused(self, session: Session, kind: str, reconnect: str) -> Refused:
        network, subject = session.caller.network, session.subject
        self._usages.exceeded[kind] += 1
        who = network if subject == NOBODY else f"{network} as {subject}"
        self._notices.report(OVERSPENT, who, kind)
        delay_s = _RETRY_S if reconnect == "retry" else _RETRY_S + self._admission.delay_s()
        advice = reconnect_advice(self._options, reconnect, delay_s)
        return Refused(ErrorReply.BUDGET_EXCEEDED, kind, advice=advice)
