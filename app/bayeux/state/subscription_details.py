"""What a session knows of its subscriptions besides their names."""

from collections.abc import Mapping
from typing import Final

from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.subscribe_qos import SubscribeQos
from holdfast.delivery.basics.feature_records import record_of, with_record

_NO_QOS: Final[Mapping[str, SubscribeQos]] = {}
_NONE_LOST: Final[Mapping[str, bool]] = {}


class SubscriptionDetails:
    """The record of a session with such knowledge. Most sessions have none."""

    __slots__ = ("lost", "qos")

    def __init__(self) -> None:
        # The QoS of subscriptions that have one.
        self.qos: dict[str, SubscribeQos] = {}
        # Those that ended without the session's client, until it learns of them, and whether the
        # last handshake's reply has them.
        self.lost: dict[str, bool] = {}


def known_details(session: Session) -> SubscriptionDetails | None:
    """Return the session's record, or None if it has none."""
    return record_of(session.records, SubscriptionDetails)


def details_of(session: Session) -> SubscriptionDetails:
    """Return the session's record, which may be new."""
    details = known_details(session)
    if details is None:
        details = SubscriptionDetails()
        session.records = with_record(session.records, details)
    return details


def qos_of_subscriptions(session: Session) -> Mapping[str, SubscribeQos]:
    """Return the QoS of its subscriptions that have one."""
    details = known_details(session)
    return _NO_QOS if details is None else details.qos


def lost_subscriptions(session: Session) -> Mapping[str, bool]:
    """Return the subscriptions that ended without its client, as in its `SubscriptionDetails`."""
    details = known_details(session)
    return _NONE_LOST if details is None else details.lost
