"""How often a remote address may ask for the administration."""

from app.delivery.buckets import Buckets, Rate
from app.web.peers import network, parse

_MAX_BUCKETS = 4096
# Whoever has no token has no business with operators.
STRANGERS = Rate(burst=10, per_s=0.2)


class Throttle:
    """Counts by address, or by what one client has of IPv6."""

    def __init__(self, rate: Rate, *, max_buckets: int = _MAX_BUCKETS) -> None:
        self._buckets = Buckets(rate, most=max_buckets // 2)

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, remote: str, now: float) -> float:
        """Zero if this one may pass; otherwise in how many seconds the next one may."""
        address = parse(remote)
        return self._buckets.take(remote if address is None else network(address), now)
