"""Reads a message's `ext` before the message takes effect.

If an unreadable verdict were ignored, the ack beside it would count as an OK. So an unreadable part
refuses its message, and the error names the path of the part.
"""

from collections.abc import Sequence

from holdfast.bayeux.extending.installed import InstalledExtensions
from holdfast.bayeux.limits.budgets import Budgets
from holdfast.bayeux.meta.disconnect import disconnect_mode_of
from holdfast.bayeux.publish.qos import publish_qos
from holdfast.bayeux.session import Session
from holdfast.bayeux.subscribe.handler import subscribe_qos
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.known_options import SAID_BY_RECEIVERS, QosInvalid, refuse_others
from holdfast.delivery.basics.channels import Channel, Kind
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.messages.verdicts import (
    SILENT,
    ClientVerdicts,
    Unreadable,
    Verdict,
    read_client_verdicts,
    read_verdicts,
)
from holdfast.settings import Settings

# The limit of verdicts in one message is the queue's limit, but at least this.
_LEAST_MOST = 10_000
_VERDICTS = "verdicts"
_ACK = "ack"
_NO_ACKS = "ack without ext.ack in the handshake"


class ExtReader:
    """Reads the `ext` of messages."""

    def __init__(self, options: Settings, installed: InstalledExtensions, budgets: Budgets) -> None:
        self._most_verdicts = most_verdicts(options)
        self._installed = installed
        self._budgets = budgets

    def read(
        self,
        session: Session,
        channel: Channel,
        message: Json,
        now: float,
    ) -> ClientVerdicts:
        """Check the keys of the message's `ext`. Returns the verdicts in it. Raises `Refused`."""
        self._installed.check(message)
        ext = message["ext"]
        if ext.get(_ACK) is not None and message["channel"] == "/meta/connect":
            self._check_ack(session)
        asked = ext.get("delivery")
        if asked is None:
            return SILENT
        try:
            return self._read_delivery(session, channel, message=message, asked=asked, now=now)
        except (Unreadable, QosInvalid) as invalid:
            raise _refused(invalid) from invalid

    def _check_ack(self, session: Session) -> None:
        """Refuse an ack of a client that believes that its messages wait for it, if they do not."""
        # With `oneway`, none waits for an ack, as the client has asked.
        is_oneway = session.terms is not None and session.terms.oneway
        is_settled_by_it = session.queue.settling is SettledBy.BATCH
        if not (is_settled_by_it or is_oneway) and _ACK in self._installed.owned:
            raise Refused(ErrorReply.EXT_INVALID, "user.illegalArgument", _NO_ACKS)

    def _read_delivery(
        self,
        session: Session,
        channel: Channel,
        *,
        message: Json,
        asked: object,
        now: float,
    ) -> ClientVerdicts:
        if type(asked) is not dict:
            raise Unreadable("delivery")
        client_verdicts = read_client_verdicts(asked, self._most_verdicts)
        if session.terms is None and (client_verdicts.verdicts or client_verdicts.pending):
            # Without terms, the client does not know the ids of entries.
            raise Unreadable("verdicts" if client_verdicts.verdicts else "pending")
        self._budgets.spend_letters(session, client_verdicts.verdicts, now)
        name = message["channel"]
        if name == "/meta/disconnect":
            disconnect_mode_of(message)
        elif channel.kind is Kind.META and name != "/meta/subscribe":
            refuse_others(asked, SAID_BY_RECEIVERS)
        elif client_verdicts.verdicts:
            # Without verdicts, QoS is read when needed: nothing has taken effect before.
            if channel.kind is Kind.META:
                subscribe_qos(session, message)
            else:
                publish_qos(channel, message)
        return client_verdicts


def most_verdicts(options: Settings) -> int:
    """Return how many verdicts one message may carry."""
    return max(_LEAST_MOST, options.max_queue)


def verdicts_of(options: Settings, client_verdicts: object) -> Sequence[Verdict]:
    """Read verdicts outside of `ext`: a list, `{verdicts: [...]}`, or one. Raises `Refused`."""
    try:
        return read_verdicts(_listed(client_verdicts), most_verdicts(options))
    except (Unreadable, QosInvalid) as unreadable:
        raise _refused(unreadable) from unreadable


def _listed(client_verdicts: object) -> object:
    if not isinstance(client_verdicts, dict):
        return client_verdicts
    if _VERDICTS not in client_verdicts:
        return [client_verdicts]
    refuse_others(client_verdicts, (_VERDICTS,))
    return client_verdicts[_VERDICTS]


def _refused(invalid: Exception) -> Refused:
    return Refused(ErrorReply.DELIVERY_INVALID, "user.illegalArgument", str(invalid))
