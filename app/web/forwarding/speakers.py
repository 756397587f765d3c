"""Who speaks, told once per link: most requests of a connection have the same speaker."""

import json
from collections import OrderedDict
from typing import Any, Final

from multidict import CIMultiDict, CIMultiDictProxy

from holdfast.bayeux.wire.caller import NO_SPEAKER, Caller, Speaker
from holdfast.bayeux.wire.login import Vouched
from holdfast.bayeux.wire.transports import SpeakerKind
from holdfast.web.forwarding.frames import FrameUnreadable, Kind, pack

# How many speakers a link remembers, and how many bytes it took to tell them. Some of their
# connections are lost.
PLACES: Final = 4096
MOST_BYTES: Final = 8 * 1024 * 1024


class ToldSpeakers:
    """The speakers that the home of a link knows, by place."""

    def __init__(self, places: int = PLACES, most_bytes: int = MOST_BYTES) -> None:
        # The least recently used one first, with its place and size. By identity: equal speakers
        # are told twice.
        self._told: OrderedDict[int, tuple[Speaker, int, int]] = OrderedDict()
        self._places, self._most_bytes = places, most_bytes
        self._bytes = 0
        # Places of speakers that only the home remembers, until others get them.
        self._free: list[int] = []

    def place_of(self, speaker: Speaker) -> tuple[int, bytes]:
        """Return the speaker's place, and the frame that must come first if it is a new one."""
        found = self._told.get(id(speaker))
        if found is not None:
            self._told.move_to_end(id(speaker))
            return found[1], b""
        written = write(speaker)
        self._make_room(len(written))
        place = self._free.pop() if self._free else len(self._told)
        self._told[id(speaker)] = speaker, place, len(written)
        self._bytes += len(written)
        return place, pack(Kind.SPEAKER, place, written)

    def _make_room(self, size: int) -> None:
        while self._told and (
            len(self._told) == self._places or self._bytes + size > self._most_bytes
        ):
            _, (_, place, freed) = self._told.popitem(last=False)
            self._bytes -= freed
            self._free.append(place)


class KnownSpeakers:
    """The speakers of a link, as its home knows them."""

    def __init__(self, places: int = PLACES) -> None:
        self._known = [NO_SPEAKER] * places

    def learn(self, place: int, data: bytes) -> None:
        """Remember who has this place from now on. Raises `FrameUnreadable`."""
        if place >= len(self._known):
            raise FrameUnreadable(f"a speaker at place {place}")
        self._known[place] = read(data)

    def at(self, place: int) -> Speaker:
        """Return who has this place. Raises `FrameUnreadable`."""
        if place >= len(self._known):
            raise FrameUnreadable(f"a speaker at place {place}")
        return self._known[place]


def write(speaker: Speaker) -> bytes:
    """Return a speaker as JSON. Headers may have characters that only Python's own allows."""
    caller = speaker.caller
    fields: dict[str, Any] = {
        "address": caller.address,
        "network": caller.network,
        "headers": [*caller.headers.items()],
        "proxied": caller.is_proxied,
        "secure": caller.is_secure,
        "subject": caller.tls_subject,
        "vouched": None if caller.vouched is None else caller.vouched.to_json(),
        "browsers": speaker.browsers,
        "cookieless": speaker.is_cookieless,
        "kind": speaker.kind.name,
        "spread": speaker.is_spread,
    }
    return json.dumps(fields).encode()


def read(data: bytes) -> Speaker:
    """Return the speaker. Raises `FrameUnreadable`."""
    try:
        fields = json.loads(data)
        vouched = fields.get("vouched")
        caller = Caller(
            fields["address"],
            fields["network"],
            CIMultiDictProxy(CIMultiDict(fields["headers"])),
            is_proxied=fields["proxied"],
            is_secure=fields["secure"],
            tls_subject=tuple((key, value) for key, value in fields["subject"]),
            vouched=None if vouched is None else Vouched.of_json(vouched),
        )
        return Speaker(
            caller,
            tuple(fields["browsers"]),
            is_cookieless=fields["cookieless"],
            kind=SpeakerKind[fields["kind"]],
            is_spread=fields.get("spread", False),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FrameUnreadable(f"a speaker: {error}") from error
