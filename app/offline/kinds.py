"""What becomes of each kind of key when the deployment is divided otherwise."""

from enum import Enum
from typing import Final, NamedTuple


class Fate(Enum):
    """What becomes of the keys of a kind."""

    # Each of its parts goes to one shard.
    MOVES = "moves"
    # All shards get all of it.
    SPREADS = "spreads"
    # It stays where it is, and belongs to all generations.
    STAYS = "stays"
    # It ends.
    ENDS = "ends"


class Kind(NamedTuple):
    """One kind of key."""

    fate: Fate
    # Where it goes, or why it ends.
    rule: str


_MOVES, _SPREADS, _STAYS, _ENDS = Fate.MOVES, Fate.SPREADS, Fate.STAYS, Fate.ENDS

# By its name in `RedisKeys`.
KINDS: Final = {
    "meta": Kind(_STAYS, "clock and newest id rise to the highest of all shards"),
    "sessions": Kind(_MOVES, "by bucket: of the subject or, without one, of the client id"),
    "handed": Kind(_MOVES, "with the session"),
    "bodies": Kind(_MOVES, "to each shard in which a queue or history has the message"),
    "receivers": Kind(
        _MOVES,
        "each receiver by its kind: session; queue of a subject, by its bucket; history or work "
        "queue, to the home of the channel; delayed message, stays if its shard does. Work of a "
        "session that gets to another shard waits in its queue again",
    ),
    "marks": Kind(_MOVES, "with the receiver"),
    "requests": Kind(_MOVES, "with the session that asked, and to those that may answer"),
    "dead": Kind(_MOVES, "with the session or queue in which the message died"),
    "prints": Kind(_MOVES, "counted again"),
    "all_dead": Kind(_MOVES, "with the letter"),
    "letters_by": Kind(_MOVES, "with the letter"),
    "topics": Kind(_MOVES, "to the home of the channel"),
    "replays": Kind(_MOVES, "stay if their shard does; else to shard 0, added to its part"),
    "replay": Kind(_MOVES, "with the list of replays"),
    "audit": Kind(_MOVES, "stays; that of a shard that ends goes to shard 0"),
    "figures": Kind(_STAYS, "a shard that goes on keeps its own; others are not in sums any more"),
    "keyed": Kind(_SPREADS, "a digest does not say whose key it is; times by the latest clock"),
    "keyed_times": Kind(_ENDS, "in the newest layout, times are in keyed"),
    "keyed_order": Kind(_SPREADS, "with the keys, the oldest first"),
    "floors": Kind(_ENDS, "what a process had lost: as if all histories had lost messages"),
    "held": Kind(_SPREADS, "holds of operators; a hold of the guard stays with its shard"),
    "remarks": Kind(_SPREADS, "the latest of each group"),
    "remarked": Kind(_SPREADS, "with the remarks"),
    "given": Kind(_ENDS, "what a process had in memory: as if it had been killed"),
    "log": Kind(_ENDS, "it must be taken first"),
    "facts": Kind(_ENDS, "shards tell them when they start"),
    "links": Kind(_ENDS, "with the log"),
    "inbox": Kind(_ENDS, "it must be empty first"),
    "journal": Kind(_STAYS, "its frames are of the shard that wrote them"),
    "journal_read": Kind(_STAYS, "with the journal"),
    "notes": Kind(_STAYS, "with the journal"),
    "hosts": Kind(_STAYS, "shard 0 has them, and hosts write them twice a second"),
    "drained": Kind(_STAYS, "shard 0 has them, and they end by themselves"),
    "lakes": Kind(_STAYS, "shard 0 has them"),
    "pipeline_result": Kind(_STAYS, "shard 0 has them"),
}
