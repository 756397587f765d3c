"""The parts of a request that publishes without a session: each is handled by one shard."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from holdfast.bayeux.wire.caller import Caller, Speaker
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.transports import SpeakerKind


class Part(NamedTuple):
    """Messages of a request that one shard handles, in one session."""

    speaker: Speaker
    # Their places in the request.
    places: Sequence[int]


class Divider(Protocol):
    """Divides requests into parts."""

    def divide(
        self, handshake: Json, caller: Caller, kind: SpeakerKind, messages: Sequence[Json]
    ) -> list[Part]:
        """Return the parts of a request; at least one, which is empty if the request is."""
        ...


class OneShard(Divider):
    """Divides nothing: this process handles everything."""

    def __init__(self, client_ids: ClientIds) -> None:
        self._client_ids = client_ids

    def divide(
        self, handshake: Json, caller: Caller, kind: SpeakerKind, messages: Sequence[Json]
    ) -> list[Part]:
        # A new identity, whatever cookies the request has: the session is not shared.
        speaker = Speaker(caller, (self._client_ids.new(),), kind=kind)
        return [Part(speaker, range(len(messages)))]
