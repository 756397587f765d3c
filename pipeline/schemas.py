"""The tables' columns, with the names that they have in the journal."""

# A row for each event, as app.journal.schema.Event has it, and the frame that it came in.
EVENT = (
    "node string, ts timestamp, kind string, msg bigint, origin string, channel string, "
    "receiver string, copies int, kept int, size int, priority int, sender string, attempt int, "
    "code string, letter bigint, fingerprint string, generation int, what string, number bigint"
)
FRAME = "epoch string, seq bigint, pos int"
JOURNAL = f"{EVENT}, {FRAME}"


# One copy of a message on its way to one receiver; each replay begins another life of it, which
# knows the letters that it was replayed from: several, if a message died of several receivers.
LIFE = (
    "origin string, msg bigint, receiver string, generation int, channel string, "
    "handed_ts timestamp, ended_ts timestamp, attempts int, redelivered bigint, refused bigint, "
    "code string, letter bigint, fingerprint string, replay_of array<bigint>"
)
# A message, and how many of its copies have come to their ends; how much of that is of receivers
# that have no name; and how many went with the process that had them.
MESSAGE = (
    "origin string, msg bigint, channel string, published bigint, copies bigint, kept bigint, "
    "replayed bigint, ended bigint, unnamed_replayed bigint, unnamed_ended bigint, lost bigint"
)
# Copies that a process had for itself when it ended.
LOST = "origin string, channel string, n bigint, found_ts timestamp"
LATENCY = "hour timestamp, channel string, n bigint, delivery binary, acked bigint, answer binary"
DEAD = (
    "hour timestamp, code string, channel string, fingerprint string, n bigint, "
    "first timestamp, last timestamp, receivers binary"
)


def names(schema: str) -> list[str]:
    """The columns' names."""
    return [column.split()[0] for column in schema.split(", ")]
