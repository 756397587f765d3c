"""Limits how often an address may send requests to the administration."""

from holdfast.bayeux.limits.buckets import Buckets, Rate
from holdfast.web.http.peers import network, parse

_MAX_BUCKETS = 4096
# Requests without a valid token have a lower limit.
STRANGERS = Rate(burst=10, per_s=0.2)


class Throttle:
    """Counts requests by IPv4 address, or by IPv6 network of one client."""

    def __init__(self, rate: Rate, *, max_buckets: int = _MAX_BUCKETS) -> None:
        self._buckets = Buckets(rate, most=max_buckets // 2)

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, remote: str, now: float) -> float:
        """Return zero if the request may pass, otherwise the seconds to wait."""
        address = parse(remote)
        return self._buckets.take(remote if address is None else network(address), now)
