"""A store that throws away what it likes when it is full is no store."""

from app.store.connection import StoreUnavailable
from app.store.line import Line


async def refuse_eviction(line: Line) -> None:
    """Refuse a server that may evict our keys, none of which ever expires by itself."""
    info = await line.ask("INFO", "memory")
    text = info.decode() if isinstance(info, bytes) else ""
    fields = dict(each.split(":", 1) for each in text.splitlines() if ":" in each)
    policy = fields.get("maxmemory_policy", "")
    if policy.startswith("allkeys-") and fields.get("maxmemory") != "0":
        raise StoreUnavailable(
            f"redis may throw messages away when it is full: set its maxmemory-policy"
            f" to noeviction (it is {policy})"
        )
