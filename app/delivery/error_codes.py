"""The words in which receivers refuse and the server explains: xmlBlaster's error codes."""

from dataclasses import dataclass

_MEANINGS = (
    ("legacy", "An old error that was never given a code"),
    ("internal", "A fault of the server"),
    ("internal.unknown", "Something unforeseen went wrong"),
    ("internal.nullpointer", "A value was missing where there must be one"),
    ("internal.illegalArgument", "The server called itself in a wrong way"),
    ("internal.interrupted", "The work was interrupted"),
    ("internal.notImplemented", "There is no such feature"),
    ("internal.connectionFailure", "The server could not reach one of its own parts"),
    ("internal.illegalState", "Something was asked of a thing in the wrong state"),
    ("internal.disconnect", "Disconnecting failed inside the server"),
    ("internal.subscribe", "Subscribing failed inside the server"),
    ("internal.unSubscribe", "Unsubscribing failed inside the server"),
    ("internal.publish", "Publishing failed inside the server"),
    ("internal.publishArr", "Publishing several messages failed inside the server"),
    ("internal.erase", "Erasing failed inside the server"),
    ("internal.get", "Getting failed inside the server"),
    ("internal.stop", "The work was given up on purpose"),
    ("resource", "Something is lacking that an operator can provide"),
    ("resource.maintenance", "Under maintenance: try later"),
    ("resource.outOfMemory", "No memory is left"),
    ("resource.tooManyThreads", "No thread is left"),
    ("resource.exhaust", "Something is used up"),
    ("resource.callbackServer.creation", "No server for callbacks could be made"),
    ("resource.overflow.queue.bytes", "A queue holds as many bytes as it may"),
    ("resource.overflow.queue.entries", "A queue holds as many entries as it may"),
    ("resource.unavailable", "Something needed is not there"),
    ("resource.temporary.unavailable", "Something needed is not there now: try again"),
    ("resource.db.unavailable", "There is no database"),
    ("resource.db.block", "The database did not answer in time"),
    ("resource.db.unknown", "The database failed in an unknown way"),
    ("resource.admin.unavailable", "Administrative commands are switched off"),
    ("resource.configuration", "The configuration is wrong"),
    ("resource.configuration.connect", "The connection is configured wrongly"),
    ("resource.configuration.pluginFailed", "A plug-in could not be loaded"),
    ("resource.configuration.xml", "The configuration of XML is wrong"),
    ("resource.configuration.sslSocket", "The configuration of TLS is wrong"),
    ("resource.configuration.address", "The address of a peer is wrong"),
    ("resource.fileIO", "A file could not be read or written"),
    ("resource.fileIO.fileLost", "A file has disappeared"),
    ("resource.cluster.notAvailable", "Another node cannot be reached"),
    ("resource.cluster.circularLoop", "A message goes round in circles between nodes"),
    ("communication", "The peer was not reached; it has not worked on the message"),
    ("communication.resource.temporary.unavailable", "The peer cannot now: try again"),
    ("communication.noConnection", "There is no connection to the peer"),
    ("communication.timeout", "The connection did nothing for too long"),
    ("communication.responseTimeout", "No verdict came in time"),
    ("communication.forceAsync", "There was no time to wait for the peer"),
    ("communication.noConnection.serverDeny", "The server is not serving now"),
    (
        "communication.noConnection.callbackServer.notavailable",
        "The receiver stopped taking messages",
    ),
    ("communication.noConnection.polling", "The connection is lost; the receiver is awaited"),
    ("communication.noConnection.dead", "The receiver was given up"),
    ("communication.user.holdback", "The server's own name for a message held back"),
    ("user", "The client's fault, or its wish"),
    ("user.update.holdback", "The receiver cannot now: keep the message and wait"),
    ("user.update.deadMessage", "The receiver is done with the message: make it a dead letter"),
    ("user.update.error", "The receiver failed over the message"),
    ("user.update.internalError", "The receiver failed in a way that it did not foresee"),
    ("user.update.illegalArgument", "The receiver got nothing that it could work with"),
    (
        "user.update.security.authentication.accessDenied",
        "The receiver does not trust this delivery",
    ),
    ("user.wrongApiUsage", "The client uses its library wrongly"),
    ("user.configuration", "Signing in failed: wrong configuration"),
    ("user.version", "The client is too old"),
    ("user.configuration.maxSession", "The subject has as many sessions as it may"),
    ("user.configuration.connectNoPubSess", "A session of the server's naming cannot be asked for"),
    ("user.configuration.identicalClient", "The session belongs to another instance of the client"),
    ("user.security", "Security stands against it"),
    ("user.security.authentication", "Signing in failed"),
    ("user.security.authentication.accessDenied", "Unknown session, or too few privileges"),
    ("user.security.authentication.accessDenied.unknownLoginName", "Unknown name"),
    ("user.security.authentication.accessDenied.wrongPassword", "Wrong password"),
    ("user.security.authentication.inactive", "The account is switched off"),
    ("user.security.authentication.expired", "The account has expired"),
    ("user.security.authentication.illegalArgument", "The credentials have no valid form"),
    ("user.security.authentication.illegalDeviceId", "This device may not sign in"),
    ("user.security.authentication.illegalDeviceType", "Devices of this type may not sign in"),
    ("user.security.authentication.nfc_deviceType", "Sign-in by NFC: wrong type of device"),
    ("user.security.authentication.nfc_notRegistered", "Sign-in by NFC: not registered"),
    ("user.security.authentication.nfc_imei", "Sign-in by NFC: the device's number is wrong"),
    ("user.security.authorization.notAuthorized", "The client may not do this here"),
    ("user.illegalArgument", "The request has a wrong argument"),
    ("user.maxSizeExceed", "Too much data"),
    ("user.publish.readonly", "The topic is read-only and has its message"),
    ("user.subscribe.id", "The client may not choose this subscription id"),
    ("user.subscribe.noCallback", "A subscriber must be able to receive"),
    ("user.oid.unknown", "There is no such topic"),
    ("user.jdbc.invalid", "The query to the database is wrong"),
    ("user.connect", "Connecting failed"),
    ("user.connect.multiple", "The client is connected already"),
    ("user.notConnected", "The client must connect first"),
    ("user.publish", "The publish was refused: its options are wrong"),
    ("user.ptp.unknownSession", "No such session to send to"),
    ("user.ptp.unknownDestination", "No such receiver, and the message must not wait for it"),
    ("user.ptp.unknownDestinationSession", "No such session of the receiver"),
    ("user.ptp.denied", "The receiver takes no messages sent to it by name"),
    ("user.message.invalid", "The content is not what its type says"),
    ("user.query.invalid", "The query is malformed"),
    ("user.query.type.invalid", "There is no such type of query"),
    ("user.admin.invalid", "The administrative request is wrong"),
    ("user.clientCode", "Free for applications"),
)

# What stands before the code on the wire; a code without a row has that of its nearest parent.
_NUMBERS = {
    "legacy": 500,
    "internal": 500,
    "resource": 500,
    "resource.overflow": 507,
    "communication": 503,
    "user": 400,
    "user.configuration": 403,
    "user.security": 403,
    "user.maxSizeExceed": 413,
    "user.notConnected": 402,
    "user.oid.unknown": 404,
    "user.publish.readonly": 403,
    "user.ptp": 404,
    "user.ptp.denied": 403,
}


@dataclass(frozen=True, slots=True, eq=False)
class ErrorCode:
    """A row of the table; each exists once."""

    text: str
    family: str
    meaning: str
    number: int

    def is_type_of(self, parent: str) -> bool:
        """Whether this is the code `parent` or stands below it."""
        return self.text == parent or self.text.startswith(parent + ".")


def _number(text: str) -> int:
    while text not in _NUMBERS:
        text = text.rpartition(".")[0]
    return _NUMBERS[text]


CODES = {
    text: ErrorCode(text, text.partition(".")[0], meaning, _number(text))
    for text, meaning in _MEANINGS
}

# Those that the server itself gives or looks for.
HOLDBACK = CODES["user.update.holdback"]
DEAD_MESSAGE = CODES["user.update.deadMessage"]
INTERNAL_ERROR = CODES["user.update.internalError"]
NO_CONNECTION = CODES["communication.noConnection"]
FAILED_OVER = CODES["user.update.error"]
RESPONSE_TIMEOUT = CODES["communication.responseTimeout"]
CHANNEL_HELD = CODES["communication.user.holdback"]
GIVEN_UP = CODES["communication.noConnection.dead"]


def find(text: str) -> ErrorCode | None:
    """The code of this name, None if there is none."""
    return CODES.get(text)
