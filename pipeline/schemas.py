"""The tables' columns, named as in the journal."""

# A row for each event, as in holdfast.journal.schema.Event, with its frame.
EVENT = (
    "node string, ts timestamp, kind string, msg bigint, origin string, channel string, "
    "receiver string, copies int, kept int, size int, priority int, sender string, attempt int, "
    "code string, wording string, letter bigint, fingerprint string, generation int, what string, "
    "number bigint"
)
FRAME = "epoch string, seq bigint, pos int"
JOURNAL = f"{EVENT}, {FRAME}"


# One copy of a message in one queue. Each replay begins another life, which has the letters that it
# was replayed from: several, if a message died of several receivers. So does each move, which
# brings the attempts along that the copy had before: `former`. Of replays, `kept` says whether the
# store has the copy. The node is the one that had the copy last.
LIFE = (
    "origin string, msg bigint, receiver string, generation int, channel string, state string, "
    "handed_ts timestamp, ended_ts timestamp, former int, attempts int, redelivered bigint, "
    "refused bigint, code string, wording string, letter bigint, fingerprint string, "
    "replay_of array<bigint>, kept int, node string"
)
# A message without its replays, as far as a shard has its copies: their number; of those with an
# end, also of unnamed receivers; and of those lost with their process. The node is the last one
# that had any. A message is settled if the sums of all shards say so.
MESSAGE = (
    "origin string, msg bigint, channel string, copies bigint, kept bigint, ended bigint, "
    "unnamed_ended bigint, lost bigint, node string"
)
# The passing copies of a process at its end, by the day of their publish.
LOST = "origin string, channel string, day date, n bigint, found_ts timestamp"
# The number of copies, by hour of publish, that took this many microseconds until their hand-over
# (DELIVERY), from there to their ack (ANSWER), or from their publish to their ack (CRITICAL): see
# holdfast.pipeline.latencies.
DELIVERY, ANSWER, CRITICAL = "delivery", "answer", "critical"
LATENCY = "hour timestamp, channel string, what string, us bigint, n bigint"


def names(schema: str) -> list[str]:
    """Return the columns' names."""
    return [column.split()[0] for column in schema.split(", ")]
