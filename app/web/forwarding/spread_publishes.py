"""Which shards handle what a request publishes without a session.

What one publisher, a subject or an address, publishes on one channel is handled by the same shard:
so it keeps its order, whatever connections it comes by. Channels are spread over all shards. Only
messages with a publish key, and others of the same request on their channels, go to the home of the
subject.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from holdfast.bayeux.wire.caller import Caller, Speaker
from holdfast.bayeux.wire.client_ids import BUCKETS, ClientIds
from holdfast.bayeux.wire.codec import Json, ext_of
from holdfast.bayeux.wire.transports import SpeakerKind
from holdfast.web.forwarding.request_door import SubjectOf
from holdfast.web.publish_requests import Divider, Part

# The last number in a name, and how far from its end it may begin.
_LAST_NUMBER: Final = re.compile(r"[0-9]{1,9}(?=[^0-9]*\Z)")
_TAIL: Final = 32
# Numbers that follow each other are this many buckets apart: a golden section, by which any count
# of them is spread evenly, however many shards there are.
_STEP: Final = 617


class AllShards(Divider):
    """Divides what a request publishes among all shards.

    Args:
        shard_of: Returns the shard of a bucket.
    """

    def __init__(
        self, client_ids: ClientIds, shard_of: Callable[[int], int], subject_of: SubjectOf
    ) -> None:
        self._client_ids = client_ids
        self._shard_of = shard_of
        self._subject_of = subject_of

    def divide(
        self, handshake: Json, caller: Caller, kind: SpeakerKind, messages: Sequence[Json]
    ) -> list[Part]:
        """Return parts that each have all messages of some channels, in their order.

        A subject's message with a publish key goes to the home of the subject, which knows its
        earlier messages, with the others of the request on its channel.
        """
        subject = self._subject_of(handshake, caller)
        who = f"address {caller.address}" if subject is None else f"subject {subject}"
        buckets: dict[object, int] = {}
        at_home: list[int] = []
        spread: dict[int, tuple[int, list[int]]] = {}
        keyed = set() if subject is None else {*map(_channel_of, filter(_has_key, messages))}
        for place, message in enumerate(messages):
            channel = _channel_of(message)
            if channel in keyed:
                at_home.append(place)
                continue
            bucket = buckets.get(channel)
            if bucket is None:
                bucket = buckets[channel] = self._bucket_of(who, channel)
            spread.setdefault(self._shard_of(bucket), (bucket, []))[1].append(place)
        parts = [
            Part(self._speaker(caller, kind, bucket), places) for bucket, places in spread.values()
        ]
        if at_home or not parts:
            # The door finds the home by the subject.
            speaker = Speaker(caller, (self._client_ids.new(),), kind=kind)
            parts.append(Part(speaker, at_home))
        return parts

    def _speaker(self, caller: Caller, kind: SpeakerKind, bucket: int) -> Speaker:
        return Speaker(caller, (self._client_ids.new(bucket),), kind=kind, is_spread=True)

    def _bucket_of(self, who: str, channel: str) -> int:
        """Return the bucket of a channel of a publisher.

        Channels that differ by a number are dealt out one after the other. By chance, one of three
        shards would often have 40 of 100.
        """
        start = max(len(channel) - _TAIL, 0)
        found = _LAST_NUMBER.search(channel, start)
        number = 0
        if found is not None:
            number = int(found[0])
            channel = f"{channel[: found.start()]}#{channel[found.end() :]}"
        # Multiples of a thousand are dealt out, too.
        place = number + number // BUCKETS
        return (self._client_ids.bucket_of(f"{who}\n{channel}") + place * _STEP) % BUCKETS


def _channel_of(message: Json) -> str:
    """Return the channel of a message; any that cannot be published has none."""
    channel = message.get("channel")
    return channel if isinstance(channel, str) else ""


def _has_key(message: Json) -> bool:
    asked = ext_of(message).get("delivery")
    return isinstance(asked, Mapping) and asked.get("key") is not None
