"""All Redis keys; no other module spells one."""

from holdfast.delivery.letters.dead import DeadLetter
from holdfast.store.format.tags import tag_of

# The generation of a new store; and of one that an earlier release began, whose keys show none.
FIRST_GENERATION = 1
NO_GENERATION = 0


def is_history(receiver: str) -> bool:
    """Return whether the receiver is a channel's history."""
    return receiver.startswith("/")


class RedisKeys:
    """The keys of a shard of a namespace. A hash tag keeps them in one slot of a cluster.

    All messages and sessions, and whatever belongs to them, can be copied into another
    generation while the current one stays. `meta` says which generation is current. The journals,
    the audit, past figures, and what the pipeline keeps belong to all generations.
    """

    def __init__(self, namespace: str, shard: int = 0, generation: int = FIRST_GENERATION) -> None:
        self.generation = generation
        self._shard = namespace, shard
        self.tag = tag = f"{{{tag_of(namespace, shard)}}}:"
        self.prefix = prefix = f"{tag}g{generation}:" if generation else tag
        # Hash: version (of the layout), generation (the current one), seed, fence, epoch (who may
        # write), epochs (the ones before it), call (the last that was carried out), skipped
        # (numbers of refused calls), lease (rises while that process lives), holder (names a lock
        # that it holds), host and offer (whose process that is, and which one may open the store
        # instead, if there are several hosts), node, deployment (its name, with which ids of
        # messages begin), key (its secret, for ids of clients), clock, former (the clock's time
        # when a release without one had the store last), newest and confirmed (ids of messages),
        # stamped (above all ids that were given), shards and homes (the map of shards and the table
        # of homes, in the first of several); the journal of a node -> number of its newest frame;
        # "digest" and the journal -> digest of that frame; "trimmed" and the journal -> number of
        # removed frames; "heard" and the journal -> when its server trimmed it last, in ms since
        # 1970. If there are other shards: log (the place at the end of the log), openings (those
        # with frames in the log, each with the id of its first frame); "place" and the number of a
        # shard -> how far its log is taken; "passed" and the number -> the openings before that
        # place, newest first. While a new generation is written: next (its number, and what its
        # meta has; see `dividing.py`), written (in the first shard, in how many shards it is).
        self.meta = tag + "meta"
        # Hash: message id -> record of the message, while any queue or history has it. If only one
        # has it, its name may stand before the record; see `receiver_in`.
        self.bodies = prefix + "bodies"
        # Hash: publish key -> "id:time" of its message, the time by the store's clock, or "id" if
        # the hash of times has it; list: "id:key" of these, oldest first.
        self.keyed = prefix + "keyed"
        self.keyed_times = prefix + "keyed:times"
        self.keyed_order = prefix + "keyed:order"
        # Hash: a session's `key` -> its record and its last batch.
        self.sessions = prefix + "sessions"
        self.handed = prefix + "handed"
        # Hash: the fields of outstanding requests, see `delivery/requests/stored_fields.py`.
        self.requests = prefix + "requests"
        # Hash: what a process that has left gives to the next one, see `given_slices.py`: number ->
        # a slice of it; count -> how many there are.
        self.given = prefix + "given"
        # Hash: name of a held channel -> since when and why.
        self.held = prefix + "held"
        # Hash: name of a topic -> its configuration, and whether it is erased.
        self.topics = prefix + "topics"
        # Hash: name of a channel whose history has lost messages -> cursor of the newest of them;
        # and two more fields, see `delivery/routing/floors.py`.
        self.floors = prefix + "floors"
        # Hash: id of a dead letter -> its record; sorted set: fingerprint -> how many letters.
        self.dead = prefix + "dead"
        self.prints = prefix + "dead:prints"
        # Hash: fingerprint -> operators' remark; sorted set of these by time of change.
        self.remarks = prefix + "dead:remarks"
        self.remarked = prefix + "dead:remarked"
        # Sorted set of the ids of replay jobs; stream of the audit.
        self.replays = prefix + "replays"
        self.audit = tag + "audit"
        # Hash: a minute, an hour or a day, by its place among those that are kept -> its figures,
        # see `figure_records.py`.
        self.figures = tag + "figures"
        # Stream: the frames that this shard writes for others; hash: the facts in them that hold,
        # and '' -> the place of the last frame that changed one.
        self.log = tag + "log"
        self.facts = tag + "facts"
        # Hash: id of a frame behind removed ones -> the place from which readers go on with it.
        self.links = tag + "log:links"
        # Hash: shard and id -> a call of that shard which is not done yet.
        self.inbox = tag + "inbox"
        # Hash, in the first shard: name of a host -> what it says of itself, if there are several.
        self.hosts = tag + "hosts"
        # Hash: id of a lake that reads the journals -> its machine and folder.
        self.lakes = tag + "lakes"
        # Sorted sets of ids of dead letters with score 0: all, and one for each index.
        self.all_dead = prefix + "dead:all"
        # What releases of layout 2 do not know, and leave as it was.
        self.unknown_to_former = (self.keyed_times, self.requests, self.given)

    def in_generation(self, generation: int) -> "RedisKeys":
        """Return the keys of this shard in another generation."""
        return RedisKeys(*self._shard, generation)

    def receivers(self, id: int) -> str:
        """Set: the sessions whose queue has the message, and the channel whose history has it.

        There is none if the record of the message says who is the only one.
        """
        return f"{self.prefix}to:{id}"

    def marks(self, receiver: str) -> str:
        """Hash: message id -> mark of its entry, unless the batch implies it."""
        return f"{self.prefix}marks:{receiver}"

    def drained(self, host: str) -> str:
        """JSON, in the first shard: who wants a host to have no shards, and since when."""
        return f"{self.tag}drained:{host}"

    def replay(self, job: str) -> str:
        """Hash: the fields of a replay job."""
        return f"{self.prefix}replay:{job}"

    def journal(self, node: str) -> str:
        """Stream: the frames of a node."""
        return f"{self.tag}journal:{node}"

    def journal_read(self, node: str) -> str:
        """Hash: id of a lake -> id of the last journal entry that it has stored."""
        return f"{self.journal(node)}:read"

    def notes(self, node: str) -> str:
        """Hash: number -> a note for a later frame; call -> the last one that wrote a frame."""
        return f"{self.tag}notes:{node}"

    def pipeline_result(self, name: str) -> str:
        """JSON: the latest result of the pipeline, see docs/reference/reports.md."""
        return f"{self.tag}pipeline:{name}"

    def letters_by(self, field: str, value: str) -> str:
        """Sorted set: ids of letters by channel, receiver, subject, code or fingerprint."""
        return f"{self.prefix}dead:{field}:{value}"

    def indexes(self, letter: DeadLetter) -> tuple[str, ...]:
        """Return the indexes that list a dead letter. The last one is its fingerprint's."""
        return (
            self.all_dead,
            self.letters_by("channel", letter.channel),
            self.letters_by("receiver", letter.key),
            self.letters_by("subject", letter.subject),
            self.letters_by("code", letter.code),
            self.letters_by("print", letter.fingerprint),
        )
