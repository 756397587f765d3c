"""The error codes of refusals and dead letters: xmlBlaster's list and receivers' own codes."""

import re
from dataclasses import dataclass
from typing import Final

_MEANINGS = {
    "legacy": "An old error without a specific code",
    "internal": "An error in the server",
    "internal.unknown": "An unexpected error",
    "internal.nullpointer": "A required value is missing",
    "internal.illegalArgument": "An invalid argument inside the server",
    "internal.interrupted": "The work was interrupted",
    "internal.notImplemented": "The feature does not exist",
    "internal.connectionFailure": "The server could not reach one of its own parts",
    "internal.illegalState": "The current state does not allow the operation",
    "internal.disconnect": "Disconnecting failed inside the server",
    "internal.subscribe": "Subscribing failed inside the server",
    "internal.unSubscribe": "Unsubscribing failed inside the server",
    "internal.publish": "Publishing failed inside the server",
    "internal.publishArr": "Publishing several messages failed inside the server",
    "internal.erase": "Erasing failed inside the server",
    "internal.get": "Getting failed inside the server",
    "internal.stop": "The work was cancelled",
    "resource": "A resource is missing that an operator can provide",
    "resource.maintenance": "Under maintenance: retry later",
    "resource.outOfMemory": "No memory is left",
    "resource.tooManyThreads": "No thread is left",
    "resource.exhaust": "A resource is used up",
    "resource.callbackServer.creation": "No server for callbacks could be created",
    "resource.overflow.queue.bytes": "The queue has its maximum number of bytes",
    "resource.overflow.queue.entries": "The queue has its maximum number of entries",
    "resource.overflow.log": "Another shard is too far behind: retry later",
    "resource.unavailable": "A resource is unavailable",
    "resource.temporary.unavailable": "A resource is temporarily unavailable: retry later",
    "resource.db.unavailable": "The database is unavailable",
    "resource.db.block": "The database did not answer in time",
    "resource.db.unknown": "The database failed for an unknown reason",
    "resource.admin.unavailable": "Administrative commands are disabled",
    "resource.configuration": "The configuration is wrong",
    "resource.configuration.connect": "The connection is configured wrongly",
    "resource.configuration.pluginFailed": "A plug-in could not be loaded",
    "resource.configuration.xml": "The XML configuration is wrong",
    "resource.configuration.sslSocket": "The TLS configuration is wrong",
    "resource.configuration.address": "The address of a peer is wrong",
    "resource.fileIO": "A file could not be read or written",
    "resource.fileIO.fileLost": "A file has disappeared",
    "resource.cluster.notAvailable": "Another node cannot be reached",
    "resource.cluster.circularLoop": "A message circulates between nodes",
    "communication": "The peer was not reached and has not processed the message",
    "communication.resource.temporary.unavailable": (
        "The peer cannot process the message now: retry later"
    ),
    "communication.noConnection": "There is no connection to the peer",
    "communication.timeout": "The connection was idle for too long",
    "communication.responseTimeout": "No verdict arrived in time",
    "communication.lateReply": "The reply came after its request had ended",
    "communication.forceAsync": "There was no time to wait for the peer",
    "communication.noConnection.serverDeny": "The server does not accept connections now",
    "communication.noConnection.callbackServer.notavailable": (
        "The receiver stopped accepting messages"
    ),
    "communication.noConnection.polling": (
        "The connection is lost; the server waits for the receiver"
    ),
    "communication.noConnection.dead": "Delivery to the receiver has ended",
    "communication.user.holdback": "Used by the server for messages that are held back",
    "user": "An error or a decision of the client",
    "user.update.holdback": "The receiver cannot process messages now: hold its queue back",
    "user.update.deadMessage": "The receiver wants the message to become a dead letter",
    "user.update.error": "The receiver failed to process the message",
    "user.update.internalError": "The receiver failed unexpectedly",
    "user.update.illegalArgument": "The receiver got invalid data",
    "user.update.security.authentication.accessDenied": "The receiver does not trust this delivery",
    "user.wrongApiUsage": "The client uses its library wrongly",
    "user.configuration": "Login failed: wrong configuration",
    "user.version": "The client is too old",
    "user.configuration.maxSession": "The subject has its maximum number of sessions",
    "user.configuration.connectNoPubSess": "Sessions named by the server cannot be requested",
    "user.configuration.identicalClient": "The session belongs to another instance of the client",
    "user.security": "A security rule forbids it",
    "user.security.authentication": "Login failed",
    "user.security.authentication.accessDenied": "Unknown session, or insufficient rights",
    "user.security.authentication.accessDenied.unknownLoginName": "Unknown login name",
    "user.security.authentication.accessDenied.wrongPassword": "Wrong password",
    "user.security.authentication.inactive": "The account is disabled",
    "user.security.authentication.expired": "The account has expired",
    "user.security.authentication.illegalArgument": "The credentials are malformed",
    "user.security.authentication.illegalDeviceId": "This device may not log in",
    "user.security.authentication.illegalDeviceType": "Devices of this type may not log in",
    "user.security.authentication.nfc_deviceType": "NFC login: wrong type of device",
    "user.security.authentication.nfc_notRegistered": "NFC login: not registered",
    "user.security.authentication.nfc_imei": "NFC login: the device's number is wrong",
    "user.security.authorization.notAuthorized": "The client lacks the right to do this",
    "user.illegalArgument": "The request has an invalid argument",
    "user.maxSizeExceed": "Too much data",
    "user.publish.readonly": "The topic is read-only and already has its message",
    "user.subscribe.id": "The client may not choose this subscription id",
    "user.subscribe.noCallback": "The subscriber cannot receive messages",
    "user.oid.unknown": "The topic does not exist",
    "user.jdbc.invalid": "The database query is wrong",
    "user.connect": "Connecting failed",
    "user.connect.multiple": "The client is already connected",
    "user.notConnected": "The client must connect first",
    "user.publish": "The publish was refused: its options are wrong",
    "user.ptp.unknownSession": "The destination session does not exist",
    "user.ptp.unknownDestination": (
        "The destination does not exist, and the message must not wait for it"
    ),
    "user.ptp.unknownDestinationSession": "The destination has no such session",
    "user.ptp.denied": "The receiver does not accept messages addressed to it",
    "user.message.invalid": "The content does not match its type",
    "user.query.invalid": "The query is malformed",
    "user.query.type.invalid": "The query type does not exist",
    "user.admin.invalid": "The administrative request is wrong",
    "user.clientCode": "Free for applications",
}


@dataclass(frozen=True, slots=True, eq=False)
class ErrorCode:
    """An error code: a row of the table, or a code that a receiver defined."""

    text: str
    family: str
    meaning: str
    # For a receiver's code, the nearest parent in the table, which decides the reaction.
    parent: "ErrorCode | None" = None

    @property
    def listed(self) -> "ErrorCode":
        """The row of the table that applies."""
        return self if self.parent is None else self.parent

    def explained(self, text: str) -> str:
        """Return the reason shown to people: the meaning of the code, then this text if any."""
        return f"{self.meaning}: {text}" if text else self.meaning

    def is_type_of(self, parent: str) -> bool:
        """Return whether this is the code `parent` or a code below it."""
        return self.text == parent or self.text.startswith(parent + ".")


CODES = {
    text: ErrorCode(text, text.partition(".")[0], meaning) for text, meaning in _MEANINGS.items()
}

# Codes that the server itself uses.
LOG_OVERFLOW = CODES["resource.overflow.log"]
SHARD_UNREACHABLE = CODES["resource.cluster.notAvailable"]
HOLDBACK = CODES["user.update.holdback"]
DEAD_MESSAGE = CODES["user.update.deadMessage"]
INTERNAL_ERROR = CODES["user.update.internalError"]
NO_CONNECTION = CODES["communication.noConnection"]
UPDATE_ERROR = CODES["user.update.error"]
RESPONSE_TIMEOUT = CODES["communication.responseTimeout"]
CHANNEL_HELD = CODES["communication.user.holdback"]
LATE_REPLY = CODES["communication.lateReply"]
DELIVERY_ENDED = CODES["communication.noConnection.dead"]


# The families of codes that receivers may send, and the form of the codes they define.
_SENT: Final = ("user", "communication")
_OWN: Final = re.compile(r"(?:user|communication)(?:\.[A-Za-z0-9_-]+){1,4}")
_LONGEST_OWN: Final = 100


def find(text: str) -> ErrorCode | None:
    """Return the code with this name, from the table or defined by a receiver, or None."""
    return CODES.get(text) or _own(text)


def said_of(code: str, reason: str) -> str:
    """Return the text in a reason, which `ErrorCode.explained` has made, without the meaning."""
    known = find(code)
    meaning = "" if known is None else known.meaning
    return "" if reason == meaning else reason.removeprefix(f"{meaning}: ")


def _own(text: str) -> ErrorCode | None:
    if len(text) > _LONGEST_OWN or not _OWN.fullmatch(text):
        return None
    parent = text
    while parent not in CODES:
        parent = parent.rpartition(".")[0]
    listed = CODES[parent]
    return ErrorCode(text, listed.family, listed.meaning, listed)


def of_receiver(text: str) -> ErrorCode | None:
    """Return the code with this name, or None if receivers may not send it."""
    found = find(text)
    return found if found is not None and found.family in _SENT else None
