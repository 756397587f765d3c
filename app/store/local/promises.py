"""Compares an external server's settings with the configured durability."""

import logging

from holdfast.store.links.link import StoreLink
from holdfast.store.links.primary import Primary
from holdfast.store.links.reply_errors import ScriptFailed
from holdfast.store.local.embedded import Durability

log = logging.getLogger(__name__)

_NO_FILE = "when it stops, everything since its last snapshot, or all data"
_NO_SYNC = "when its machine stops, what was not written yet, often half a minute"
_A_SECOND = "when its machine stops, the last second or two"
# What can be lost, by durability and by what the server lacks: the file, or its synchronisation.
_LOSSES: dict[Durability, dict[str, str]] = {
    Durability.MEMORY: {},
    Durability.EVERYSEC: {"appendonly no": _NO_FILE, "appendfsync no": _NO_SYNC},
    Durability.ALWAYS: {
        "appendonly no": _NO_FILE,
        "appendfsync no": _NO_SYNC,
        "appendfsync everysec": _A_SECOND,
    },
}


async def warn_if_weaker(link: StoreLink, primary: Primary, durability: Durability) -> None:
    """Log what the server may lose; log nothing if it hides its settings."""
    try:
        config = await link.ask("CONFIG", "GET", "append*")
    except ScriptFailed as error:
        log.info("the store at %s does not show its settings: %s", primary, error)
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
            durability.value, primary, name, fields[name], loss,
        )  # fmt: skip
