"""The names that extensions import from `holdfast`; docs/how-to/extensions.md explains them."""

from holdfast.bayeux.api import ServerApi, SessionApi
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.rights import Authorizer, Denial, SecurityPolicy, Vote
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.ports.error_handler import Failure, ForMessage, ForRest, Reaction
from holdfast.delivery.queues.dispatcher import Dispatcher, DispatcherInput
from holdfast.delivery.settling.reactions import AWAITED, GIVEN_UP, REFUSED, REFUSED_FOR_GOOD

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
