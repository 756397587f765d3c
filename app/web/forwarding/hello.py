"""What both ends of a new link say before anything else: links join shards of one deployment."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

from holdfast.web.forwarding.frames import FrameUnreadable, Kind, pack
from holdfast.web.forwarding.shard_link import Link

# The form of all other frames. Releases with different forms do not understand each other.
FORM: Final = 1


@dataclass(frozen=True, slots=True)
class Hello:
    """Who has one end of a link."""

    shard: int
    # How many shards the deployment has.
    count: int
    deployment: str
    release: str
    form: int = FORM

    def pack(self) -> bytes:
        return pack(Kind.HELLO, 0, json.dumps(asdict(self)).encode())

    @classmethod
    def unpack(cls, data: bytes) -> "Hello":
        """Undo `pack`. A later form may have more fields."""
        try:
            fields = json.loads(data)
            own = {name: fields[name] for name in cls.__slots__}
        except (ValueError, KeyError, TypeError) as error:
            raise FrameUnreadable(f"a greeting: {error!r}") from error
        return cls(**own)

    def fault_of(self, peer: "Hello") -> str | None:
        """Return why the peer cannot be another shard of this deployment, or None."""
        if peer.form != self.form:
            return f"release {peer.release} has frames of form {peer.form}, not {self.form}"
        if (peer.deployment, peer.count) != (self.deployment, self.count):
            return f"it belongs to another deployment, {peer.deployment}, of {peer.count} shards"
        if peer.shard == self.shard or not 0 <= peer.shard < self.count:
            return f"it says that it is shard {peer.shard}"
        return None


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
        fault = check(Hello.unpack(data))
        greeted(fault)
        if fault is not None:
            link.close()

    link.expect(Kind.HELLO, hear)
    link.send(own.pack())
