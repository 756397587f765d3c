"""Refuses stores that evict keys when their memory is full."""

from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.link import StoreLink


async def refuse_eviction(link: StoreLink) -> None:
    """Refuse a store that may evict our keys, none of which expire."""
    info = await link.ask("INFO", "memory")
    text = info.decode() if isinstance(info, bytes) else ""
    fields = dict(each.split(":", 1) for each in text.splitlines() if ":" in each)
    policy = fields.get("maxmemory_policy", "")
    if policy.startswith("allkeys-") and fields.get("maxmemory") != "0":
        raise StoreUnavailable(
            f"redis may evict messages when it is full: set its maxmemory-policy"
            f" to noeviction (it is {policy})"
        )
