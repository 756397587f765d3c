"""How often a remote address may ask: a bucket of tokens for each, in a table of bounded size."""

from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

_MAX_BUCKETS = 4096
# Whoever has one address of IPv6 usually has all of its network.
_HOST_BITS = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many per second in the long run."""

    burst: float
    per_s: float


# Whoever has no token has no business with operators.
STRANGERS = Rate(burst=10, per_s=0.2)


@dataclass(slots=True)
class _Bucket:
    level: float
    at: float


class Throttle:
    """Counts by address; whoever was not seen for the longest time is forgotten first."""

    def __init__(self, rate: Rate, *, max_buckets: int = _MAX_BUCKETS) -> None:
        self._rate = rate
        self._max = max_buckets
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, address: str, now: float) -> float:
        """Zero if this one may pass; otherwise in how many seconds the next one may."""
        rate, address = self._rate, _network(address)
        bucket = self._buckets.pop(address, None) or _Bucket(rate.burst, now)
        self._buckets[address] = bucket
        if len(self._buckets) > self._max:
            self._buckets.popitem(last=False)
        bucket.level = min(rate.burst, bucket.level + (now - bucket.at) * rate.per_s)
        bucket.at = now
        if bucket.level < 1.0:
            return (1.0 - bucket.level) / rate.per_s
        bucket.level -= 1.0
        return 0.0


def _network(address: str) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{int(parsed) >> _HOST_BITS:x}::"
