"""The names that extensions import from `holdfast`; docs/extensions.md explains them."""

from holdfast.bayeux.api import ServerApi, SessionApi
from holdfast.bayeux.caller import Caller
from holdfast.bayeux.codec import Json
from holdfast.bayeux.errors import ErrorReply, Refused
from holdfast.bayeux.extension import ServerExtension, SessionExtension
from holdfast.bayeux.operation import Operation
from holdfast.bayeux.qos import Qos
from holdfast.bayeux.rights import Authorizer, Denial, SecurityPolicy, Vote
from holdfast.bayeux.services import ServiceCall
from holdfast.delivery.dispatcher import Dispatcher, DispatcherInput
from holdfast.delivery.error_codes import ErrorCode
from holdfast.delivery.reactions import (
    AWAITED,
    GIVEN_UP,
    REFUSED,
    REFUSED_FOR_GOOD,
    Failure,
    ForMessage,
    ForRest,
    Reaction,
)

__all__ = [
    "AWAITED",
    "GIVEN_UP",
    "REFUSED",
    "REFUSED_FOR_GOOD",
    "Authorizer",
    "Caller",
    "Denial",
    "Dispatcher",
    "DispatcherInput",
    "ErrorCode",
    "ErrorReply",
    "Failure",
    "ForMessage",
    "ForRest",
    "Json",
    "Operation",
    "Qos",
    "Reaction",
    "Refused",
    "SecurityPolicy",
    "ServerApi",
    "ServerExtension",
    "ServiceCall",
    "SessionApi",
    "SessionExtension",
    "Vote",
]
