"""What `ext` of a message says, read before any of the message has effect.

A verdict that is ignored is taken for consent by the ack beside it. So what cannot be read refuses
the message that carries it, by the path of the part.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.bayeux.codec import Json
from app.bayeux.disconnect import parting_of
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.publish import publish_qos
from app.bayeux.qos import SAID_BY_RECEIVERS, QosInvalid, refuse_others
from app.bayeux.sessions import Session
from app.bayeux.subscribe import subscribe_qos
from app.delivery.channels import Channel, Kind
from app.delivery.verdicts import SILENT, Said, Unreadable, Verdict, read_said, read_verdicts

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

# Verdicts of one message: as many as a queue may hold, and never fewer than these.
_LEAST_MOST = 10_000


def read_ext(bayeux: "Bayeux", session: Session, channel: Channel, message: Json) -> Said:
    """What the message says of deliveries. Raises `Refused`."""
    check_ext(bayeux, message)
    asked = message["ext"].get("delivery")
    if asked is None:
        return SILENT
    try:
        return _read_delivery(bayeux, session, channel, message, asked)
    except (Unreadable, QosInvalid) as invalid:
        raise _refused(invalid) from invalid


def check_ext(bayeux: "Bayeux", message: Json) -> None:
    """Ask who owns the keys of `ext` whether they can be read. Raises `Refused`."""
    for name in message["ext"]:
        for check in bayeux.ext_checks.get(name, ()):
            check(message)


def most_verdicts(bayeux: "Bayeux") -> int:
    """How many verdicts one message may carry."""
    return max(_LEAST_MOST, bayeux.options.queue_limits.entries)


def verdicts_of(bayeux: "Bayeux", said: object) -> Sequence[Verdict]:
    """The verdicts of a list outside `ext`. Raises `Refused`."""
    try:
        return read_verdicts(said, most_verdicts(bayeux))
    except Unreadable as unreadable:
        raise _refused(unreadable) from unreadable


def _read_delivery(
    bayeux: "Bayeux", session: Session, channel: Channel, message: Json, asked: object
) -> Said:
    if type(asked) is not dict:
        raise Unreadable("delivery")
    said = read_said(asked, most_verdicts(bayeux))
    _check_agreed(session, said)
    bayeux.budgets.spend_letters(session, said.verdicts)
    name = message["channel"]
    if name == "/meta/disconnect":
        parting_of(message)
    elif channel.kind is Kind.META and name != "/meta/subscribe":
        refuse_others(asked, SAID_BY_RECEIVERS, {})
    elif said.verdicts:
        # Else they are read when they are needed: nothing has had effect before.
        if channel.kind is Kind.META:
            subscribe_qos(session, message)
        else:
            publish_qos(channel, message)
    return said


def _check_agreed(session: Session, said: Said) -> None:
    """Who has agreed on no verdicts was never told what to give them on."""
    if session.terms is None and (said.verdicts or said.pending):
        raise Unreadable("verdicts" if said.verdicts else "pending")


def _refused(invalid: Exception) -> Refused:
    return Refused(BayeuxError.DELIVERY_INVALID, "user.illegalArgument", str(invalid))
