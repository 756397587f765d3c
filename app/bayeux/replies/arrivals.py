"""Settles or returns what transports took or did not take, now or when a receipt says so."""

from collections.abc import Mapping

from holdfast.bayeux.expiry.expired_messages import MessageExpiry
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.subscription_details import qos_of_subscriptions
from holdfast.bayeux.wire.receipts import Receipt, Taken
from holdfast.bayeux.wire.subscribe_qos import PLAIN, SubscribeQos
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.settling.hand_overs import HandOvers
from holdfast.delivery.settling.settlement import Settlement


class Arrivals:
    """Records which batches reached their transports."""

    def __init__(
        self,
        hub: Hub[Session],
        *,
        settlement: Settlement[Session],
        hand_overs: HandOvers[Session],
        message_expiry: MessageExpiry,
    ) -> None:
        self._hub = hub
        self._settlement = settlement
        self._hand_overs = hand_overs
        self._message_expiry = message_expiry

    def answered(self, session: Session, batch: Batch, taken: Taken, now: float) -> None:
        """Record that the transport took this batch, or has it and will say whether it took it."""
        if isinstance(taken, Receipt) and not session.is_gone and self._settles(session):
            self._await(taken, session, batch)
        else:
            self._took(session, batch, now)

    def _await(self, receipt: Receipt, session: Session, batch: Batch) -> None:
        # Nothing else is handed over meanwhile: what the transport did not take comes first.
        session.pauses += 1
        client_id = session.client_id

        def told(is_taken: bool, now: float) -> None:
            session.pauses -= 1
            if session.is_gone:
                # Its end has decided what becomes of these messages.
                return
            if session.client_id == client_id:
                # Otherwise the takeover has returned them to the queue.
                self._was_taken(session, batch, now, is_taken=is_taken)
            if session.queue.count:
                self._hub.make_ready(session)

        receipt.then(told)

    def _settles(self, session: Session) -> bool:
        """Return whether anything is settled when it is written, not when it is acked."""
        return not session.can_refuse or bool(qos_of_subscriptions(session))

    def _was_taken(self, session: Session, batch: Batch, now: float, *, is_taken: bool) -> None:
        if is_taken:
            self._took(session, batch, now)
        else:
            self.not_taken(session, batch, now)

    def _took(self, session: Session, batch: Batch, now: float) -> None:
        session.lazy_due = 0.0
        if not session.can_refuse:
            self._settlement.took(session, session.queue.written(batch), now)
        qos = qos_of_subscriptions(session)
        if qos:
            oneway = self._oneway(session, qos, batch)
            self._settlement.took(session, session.queue.settle(oneway), now)

    def _oneway(self, session: Session, qos: Mapping[str, SubscribeQos], batch: Batch) -> list[int]:
        """Return the numbers of oneway entries, which are settled when written."""
        handed = session.queue.in_flight()
        return [
            seq
            for seq in batch.numbers
            if seq in handed
            and qos.get(session.subscription(handed[seq].message.channel) or "", PLAIN).oneway
        ]

    def not_taken(self, session: Session, batch: Batch, now: float) -> None:
        """Return a batch to the queue of which nothing was written."""
        self._wait_again(session, is_back=self._hand_overs.return_unwritten(session, batch, now))

    def lost(self, session: Session, batch: Batch, now: float) -> None:
        """Return a batch to the queue that an extension refused, or failed on."""
        self._wait_again(session, is_back=self._hand_overs.return_unsent(session, batch, now))

    def _wait_again(self, session: Session, *, is_back: bool) -> None:
        self._message_expiry.watch(session)
        if is_back and session.held_connect is not None:
            # Another connect has arrived in the meantime.
            self._hub.make_ready(session)
