"""What both ends of a new link say before anything else: links join shards of one deployment."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Final

from holdfast.web.forwarding.frames import FrameUnreadable, Kind, pack
from holdfast.web.forwarding.shard_link import Link

# The lowest and the highest form of all other frames that this release can read and write. Both
# ends of a link take the highest that they have in common.
FORM: Final = 1
HIGHEST: Final = FORM
# The number of a door on a host without a shard. No link leads to it.
NO_SHARD: Final = -1


@dataclass(frozen=True, slots=True)
class Hello:
    """Who has one end of a link."""

    shard: int
    # How many shards the deployment has.
    count: int
    deployment: str
    release: str
    # The lowest form, which earlier releases take for the only one, and the highest.
    form: int = FORM
    highest: int = HIGHEST
    # The host of the shard; empty if the deployment has no list of hosts.
    host: str = ""
    # What the door calls a link between two hosts. A later connection may take over the link.
    link: str = ""
    renews: bool = False

    def pack(self) -> bytes:
        """Leave out what is as in the greeting of a release that knows no more."""
        found = {
            name: value
            for name, value in asdict(self).items()
            if name in _REQUIRED or value != _without(name, self.form)
        }
        return pack(Kind.HELLO, 0, json.dumps(found).encode())

    @classmethod
    def unpack(cls, data: bytes) -> "Hello":
        """Undo `pack`. A later release may have more fields."""
        try:
            given = json.loads(data)
            found = {name: given[name] for name in _REQUIRED}
            found |= {
                name: given.get(name, _without(name, found["form"]))
                for name in _KINDS
                if name not in found
            }
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FrameUnreadable(f"a greeting: {error!r}") from error
        for name, kind in _KINDS.items():
            if type(found[name]) is not kind:
                raise FrameUnreadable(f"a greeting: {name} is {found[name]!r:.100}")
        return cls(**found)

    def form_with(self, peer: "Hello") -> int | None:
        """Return the form of frames on a link to this peer, or None if there is none."""
        found = min(self.highest, peer.highest)
        return found if found >= max(self.form, peer.form) else None

    def fault_of(self, peer: "Hello") -> str | None:
        """Return why the peer cannot be another shard of this deployment, or None."""
        if self.form_with(peer) is None:
            return f"release {peer.release} has frames of form {peer.forms}, not {self.forms}"
        if (peer.deployment, peer.count) != (self.deployment, self.count):
            return f"it belongs to another deployment, {peer.deployment}, of {peer.count} shards"
        if peer.shard == self.shard or not NO_SHARD <= peer.shard < self.count:
            return f"it says that it is shard {peer.shard}"
        return None

    @property
    def forms(self) -> str:
        """The range of forms, in words."""
        return f"{self.form}" if self.form == self.highest else f"{self.form} to {self.highest}"


_KINDS: Final[dict[str, type]] = {each.name: each.type for each in fields(Hello)}  # type: ignore[misc]
# What every greeting has.
_REQUIRED: Final = ("shard", "count", "deployment", "release", "form")


def _without(name: str, form: object) -> object:
    """Return what a greeting without this field means, given its lowest form."""
    return form if name == "highest" else _KINDS[name]()


def greet(
    link: Link,
    own: Hello,
    check: Callable[[Hello], str | None],
    greeted: Callable[[str | None], None],
) -> None:
    """Say who this is, and hear who the peer is, before any other frame.

    Args:
        link: A link without frames so far; its connection may not be made yet.
        own: Who this is.
        check: Returns why the peer is refused, or None.
        greeted: Called with what `check` has returned. The link is closed if that is a reason.
    """

    def hear(_: int, data: bytes) -> None:
        peer = Hello.unpack(data)
        fault = check(peer)
        link.form = own.form_with(peer) or 0
        greeted(fault)
        if fault is not None:
            link.close()

    link.expect(Kind.HELLO, hear)
    link.send(own.pack())
