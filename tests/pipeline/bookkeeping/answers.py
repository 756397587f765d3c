"""What each report has to say, by the books: its rows by their keys."""

from collections.abc import Callable

from tests.pipeline.bookkeeping import durations, fates, over_time
from tests.pipeline.bookkeeping.ledger import Ledger
from tests.pipeline.bookkeeping.rows import Rows

# By report: the columns of the key, and the rows.
ANSWERS: dict[str, tuple[tuple[str, ...], Callable[[Ledger], Rows]]] = {
    "latency": (("channel",), durations.latency),
    "dead": (("code", "channel", "fingerprint"), fates.dead),
    "poison": (("msg", "origin"), fates.poison),
    "redelivery": (("channel", "receiver"), fates.redelivery),
    "funnel": (("channel",), fates.funnel),
    "flapping": (("receiver",), fates.flapping),
    "holdback-advice": (("channel",), durations.holdback_advice),
    "throughput": (("minute", "node"), over_time.throughput),
    "publishers": (("sender",), over_time.publishers),
    "slow-receivers": (("receiver",), durations.slow_receivers),
    "backlog": (("hour",), over_time.backlog),
    "trend": (("channel",), over_time.trend),
    "lag": (("hour", "receiver"), durations.lag),
    "refused-publishes": (("reason", "channel"), over_time.refused_publishes),
    "days": (("day",), over_time.days),
    "unusual": (("hour", "channel", "measure"), fates.unusual),
    "causes": (("code", "wording"), fates.causes),
    "requests": (("channel",), durations.requests),
}
