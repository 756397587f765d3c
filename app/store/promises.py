"""What somebody else's server may lose although the durability says that it is kept."""

import logging

from app.store.address import Address
from app.store.embedded import Durability
from app.store.line import Line
from app.store.refusals import ScriptFailed

log = logging.getLogger(__name__)

_NO_FILE = "when it stops, everything since its last snapshot, or simply everything"
_NO_SYNC = "when its machine stops, what that had not written yet, often half a minute"
_A_SECOND = "when its machine stops, what was kept in the last second or two"
# By durability and by what the server has: no append-only file, or how that is written.
_LOSSES: dict[Durability, dict[str, str]] = {
    Durability.MEMORY: {},
    Durability.EVERYSEC: {"appendonly no": _NO_FILE, "appendfsync no": _NO_SYNC},
    Durability.ALWAYS: {
        "appendonly no": _NO_FILE,
        "appendfsync no": _NO_SYNC,
        "appendfsync everysec": _A_SECOND,
    },
}


async def warn_if_weaker(line: Line, address: Address, durability: Durability) -> None:
    """Log what the server may lose; one that does not show its settings is left alone."""
    try:
        config = await line.ask("CONFIG", "GET", "append*")
    except ScriptFailed as error:
        log.info("the store at %s does not show its settings: %s", address, error)
        return
    found = config if isinstance(config, dict) else {}
    fields = {
        name: found.get(name.encode(), b"").decode() for name in ("appendonly", "appendfsync")
    }
    name = "appendonly" if fields["appendonly"] == "no" else "appendfsync"
    loss = _LOSSES[durability].get(f"{name} {fields[name]}")
    if loss is not None:
        log.warning(
            "durability is %s, but the store at %s has %s %s and loses: %s",
            durability.value, address, name, fields[name], loss,
        )  # fmt: skip
