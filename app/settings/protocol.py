"""Settings of Bayeux and its transports."""

from http import HTTPStatus
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from holdfast.delivery.basics.channels import Channels, Kind
from holdfast.settings.channels import ChannelSettings
from holdfast.settings.section import Limit, Milliseconds, Section, TimeLimit, Token
from holdfast.units import Unit

Transport = Literal["websocket", "long-polling", "callback-polling"]


class BayeuxSettings(Section):
    heading: ClassVar[str] = "Protocol"

    transports: list[Transport] = Field(
        default=["websocket", "long-polling"],
        min_length=1,
        description="Transports to offer, the preferred one first: websocket, long-polling, "
        "callback-polling (JSONP).",
    )
    timeout: Milliseconds = Field(
        default=30_000, description="Maximum time for which a connect is held."
    )
    interval: Milliseconds = Field(
        default=0, description="Time that clients wait between two connects."
    )
    max_interval: Milliseconds = Field(
        default=10_000,
        description="Time without a connect, beyond the interval, after which a session ends.",
    )
    max_lazy_timeout: Milliseconds = Field(
        default=5_000, description="Maximum delay of lazy messages."
    )
    meta_connect_deliver_only: bool = Field(
        default=False, description="Deliver messages with replies to connects only."
    )
    handshake_reconnect: bool = Field(
        default=False,
        description="Advise maxInterval, so that clients know when to handshake again.",
    )
    allow_message_delivery_during_handshake: bool = Field(
        default=False, description="Deliver messages with replies to handshakes."
    )
    broadcast_to_publisher: bool = Field(
        default=True, description="Deliver a message to its publisher too, if it has subscribed."
    )
    trust_client_session: bool = Field(
        default=False,
        description="Accept a client id without the cookie of its session, even from browsers "
        "and over HTTP.",
    )
    max_sessions_per_browser: int = Field(
        default=1, ge=-1, description="Held connects per browser over HTTP; -1 is unlimited."
    )
    multi_session_interval: Annotated[int, Unit.MS] = Field(
        default=2_000,
        description="Polling interval for sessions beyond max_sessions_per_browser; 0 refuses "
        "them.",
    )
    duplicate_meta_connect_http_response_code: int = Field(
        default=409,
        ge=400,
        le=599,
        description="HTTP status of a held connect that a newer connect supersedes.",
    )
    channels: dict[str, ChannelSettings] = Field(
        default={}, description="Settings of channels, by pattern."
    )

    @property
    def timeout_s(self) -> float:
        return self.timeout / 1000

    @property
    def interval_s(self) -> float:
        return self.interval / 1000

    @property
    def max_interval_s(self) -> float:
        return self.max_interval / 1000

    @field_validator("channels")
    @classmethod
    def _check_channels(cls, channels: dict[str, ChannelSettings]) -> dict[str, ChannelSettings]:
        known = Channels()
        for pattern in channels:
            channel = known.get(pattern)
            if channel is None or channel.kind is not Kind.BROADCAST:
                raise ValueError(
                    f"{pattern!r} is neither a channel nor a pattern that clients can publish on"
                )
        return channels

    @field_validator("duplicate_meta_connect_http_response_code")
    @classmethod
    def _check_status(cls, status: int) -> int:
        HTTPStatus(status)
        return status


class TransportSettings(Section):
    heading: ClassVar[str] = "Callback-polling and WebSocket"

    callback_parameter: str = Field(
        default="jsonp",
        min_length=1,
        description="Query parameter with the name of the JSONP callback.",
    )
    callback_parameter_max_length: Limit = Field(
        default=64, description="Maximum length of the callback's name."
    )
    ws_messages_per_frame: int = Field(
        default=1,
        ge=-1,
        description="Maximum messages in one WebSocket frame; -1 puts all into one.",
    )
    ws_idle_timeout: Milliseconds = Field(
        default=300_000,
        description="Time without a message of a living session after which a WebSocket is "
        "closed; 0 is never.",
    )
    ws_session_timeout: TimeLimit = Field(
        default=10_000,
        description="Time within which a new WebSocket must name a session, or is closed.",
    )
    ws_require_handshake_per_connection: bool = Field(
        default=False, description="Require a handshake as the first message of each WebSocket."
    )
    ws_protocol: Token | None = Field(
        default=None, description="WebSocket subprotocol that clients must offer."
    )
