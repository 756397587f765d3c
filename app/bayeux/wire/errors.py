"""The table of all errors that clients can see, in CometD's `code:args:text` form."""

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from holdfast.bayeux.wire.operation import Operation

# Where the page of all errors is below the address of the documentation.
PAGE: Final = "reference/error-codes/"
# What refusals say that the backend decided.
BY_BACKEND: Final = "denied_by_backend"


class ErrorReply(Enum):
    """A row of the table: code and text; arguments are added when it is sent.

    `errors.toml`, beside this module, explains each row.
    """

    CHANNEL_MISSING = (400, "channel_missing")
    DATA_MISSING = (400, "data_missing")
    DELIVERY_INVALID = (400, "delivery_invalid")
    NOT_SUPPORTED = (400, "not_supported")
    ADVICE_INVALID = (400, "advice_invalid")
    EXT_INVALID = (400, "ext_invalid")
    TEXT_INVALID = (400, "text_invalid")
    NUMBER_INVALID = (400, "number_invalid")
    OFFSET_INVALID = (400, "offset_invalid")
    MESSAGE_TOO_DEEP = (400, "message_too_deep")
    HANDSHAKE_BATCHED = (400, "handshake_batched")
    REQUEST_MALFORMED = (400, "request_malformed")
    TRANSPORT_UNKNOWN = (400, "transport_unknown")
    CALLBACK_INVALID = (400, "callback_invalid")
    CLIENT_ID_MISSING = (402, "client_id_missing")
    COOKIE_MISSING = (402, "cookie_missing")
    SESSION_TAKEN = (402, "session_taken")
    SESSION_UNKNOWN = (402, "session_unknown")
    HANDSHAKE_DENIED = (403, "handshake_denied")
    CHANNEL_CREATE_DENIED = (403, "channel_create_denied")
    PUBLISH_DENIED = (403, "publish_denied")
    CREATE_DENIED = (403, "create_denied")
    ERASE_DENIED = (403, "erase_denied")
    HISTORY_DENIED = (403, "history_denied")
    REPLAY_DENIED = (403, "replay_denied")
    PRESENCE_DENIED = (403, "presence_denied")
    SUBSCRIBE_DENIED = (403, "subscribe_denied")
    SUBSCRIPTION_MISSING = (403, "subscription_missing")
    SUBSCRIPTION_INVALID = (403, "subscription_invalid")
    UNSUBSCRIBE_FAILED = (403, "unsubscribe_failed")
    SESSION_NAME_DENIED = (403, "session_name_denied")
    SESSIONS_EXCEEDED = (403, "sessions_exceeded")
    ORIGIN_DENIED = (403, "origin_denied")
    LOGIN_DENIED = (403, "login_denied")
    TICKET_EXPIRED = (403, "ticket_expired")
    CREDENTIALS_IN_URL = (403, "credentials_in_url")
    DESTINATION_DENIED = (403, "destination_denied")
    REQUEST_DENIED = (403, "request_denied")
    REPLY_DENIED = (403, "reply_denied")
    TOPIC_READONLY = (403, "topic_readonly")
    MESSAGE_DELETED = (404, "message_deleted")
    HISTORY_MISSING = (404, "history_missing")
    DESTINATION_UNKNOWN = (404, "destination_unknown")
    NO_RESPONDERS = (404, "no_responders")
    CHANNEL_INVALID = (405, "channel_invalid")
    MESSAGE_ID_INVALID = (405, "message_id_invalid")
    CONNECTION_TYPES_UNSUPPORTED = (406, "connection_types_unsupported")
    REQUEST_TIMEOUT = (408, "request_timeout")
    TIMEOUT = (408, "timeout")
    CONNECT_SUPERSEDED = (409, "connect_superseded")
    DUPLICATE_REPLY = (409, "duplicate_reply")
    LATE_REPLY = (410, "late_reply")
    HISTORY_LOST = (410, "history_lost")
    MESSAGE_TOO_LARGE = (413, "message_too_large")
    REQUEST_TOO_LARGE = (413, "request_too_large")
    SUBSCRIPTIONS_EXCEEDED = (413, "subscriptions_exceeded")
    MEDIA_TYPE_UNSUPPORTED = (415, "media_type_unsupported")
    HOST_UNKNOWN = (421, "host_unknown")
    SERVER_FAULT = (500, "server_fault")
    RESPONDER_ERROR = (500, "responder_error")
    BUDGET_EXCEEDED = (429, "budget_exceeded")
    WEBSOCKET_VERSION_UNSUPPORTED = (426, "websocket_version_unsupported")
    TRANSFER_CODING_UNSUPPORTED = (501, "transfer_coding_unsupported")
    PUBLISHES_EXCEEDED = (503, "publishes_exceeded")
    REQUESTS_EXCEEDED = (503, "requests_exceeded")
    READERS_EXCEEDED = (503, "readers_exceeded")
    REQUESTS_USED_UP = (503, "requests_used_up")
    SUBSCRIPTIONS_USED_UP = (503, "subscriptions_used_up")
    TOPICS_USED_UP = (503, "topics_used_up")
    CHANNEL_HELD_BACK = (503, "channel_held_back")
    SERVER_BUSY = (503, "server_busy")
    BACKEND_UNAVAILABLE = (503, "backend_unavailable")
    STORE_UNAVAILABLE = (503, "store_unavailable")
    SHARD_UNAVAILABLE = (503, "shard_unavailable")
    DESTINATION_FULL = (507, "destination_full")

    @property
    def code(self) -> int:
        return self.value[0]

    @property
    def reason(self) -> str:
        return self.value[1]

    @property
    def anchor(self) -> str:
        """Where its explanation is on the page of all errors."""
        return f"#{self.code}-{self.reason}"

    def wire(self, *args: str) -> str:
        """The error as it is sent."""
        return f"{self.code}:{','.join(args)}:{self.reason}"


def anchor_of(error: str) -> str:
    """Return where an error, as it was sent, is explained on the page of all errors."""
    code, _, rest = error.partition(":")
    return f"#{code}-{rest.rpartition(':')[2]}"


class Refused(Exception):
    """Refuses one message. Raise it to send an error reply, with further fields if given."""

    def __init__(
        self,
        error: ErrorReply,
        *args: str,
        advice: Mapping[str, Any] | None = None,
        ext: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(error.wire(*args))
        self.error = error
        self.arguments = args
        self.advice = advice
        self.ext = ext

    def fill(self, reply: dict[str, Any], errors: Counter[str]) -> None:
        """Write the error and the further fields into the reply, and count the error."""
        errors[self.error.reason] += 1
        reply["successful"] = False
        reply["error"] = str(self)
        if self.advice:
            reply["advice"] = self.advice
        if self.ext:
            reply["ext"] = {**reply.get("ext", {}), **self.ext}


class Undecided(Refused):
    """The backend must be asked first. Where nothing can wait for its answer, this refuses."""

    def __init__(self, operation: Operation, channel: str) -> None:
        super().__init__(ErrorReply.BACKEND_UNAVAILABLE)
        self.operation, self.channel = operation, channel


def refused_by_backend(error: ErrorReply, text: str) -> Refused:
    """Return a refusal that the backend decided, with the text that it has for the client."""
    ext = {"backend": {"text": text}} if text else None
    return Refused(error, BY_BACKEND, ext=ext)


class RequestRefused(Exception):
    """Refuses a whole request before any of its messages takes effect.

    Its arguments say what is wrong and where. They quote nothing from the request.
    """

    def __init__(self, error: ErrorReply, *args: str, wait_s: float = 0.0) -> None:
        super().__init__(error.wire(*args))
        self.error = error
        # How many seconds the client should wait before it tries again, if known.
        self.wait_s = wait_s
