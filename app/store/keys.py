"""The names of everything in the store; nowhere else is one spelt."""

from app.delivery.dead_letters import DeadLetter

# Of what stands under these names; a store with another one is not opened.
LAYOUT = 2


class Keys:
    """The keys of one namespace. Its tag in braces keeps them in one slot of a cluster."""

    def __init__(self, namespace: str) -> None:
        self.prefix = prefix = f"{{{namespace}}}:"
        # Hash: version, seed, fence, epoch (who may write), node, newest and
        # confirmed (ids of messages); the journal of a node -> number of its newest frame.
        self.meta = prefix + "meta"
        # Hash: id of a message that somebody waits for -> its record.
        self.bodies = prefix + "bodies"
        # Hash: key of a message -> its id; list: "id:key" of these, the oldest first.
        self.keyed = prefix + "keyed"
        self.keyed_order = prefix + "keyed:order"
        # Hash: key of a session -> its record, and the last batch that it was handed.
        self.sessions = prefix + "sessions"
        self.handed = prefix + "handed"
        # Hash: name of a channel that is held back -> since when and why.
        self.held = prefix + "held"
        # Hash: id of a dead letter -> its record; sorted set: fingerprint -> how many letters.
        self.dead = prefix + "dead"
        self.prints = prefix + "dead:prints"
        # Hash: fingerprint -> what operators say of it; sorted set of these by when that was.
        self.remarks = prefix + "dead:remarks"
        self.remarked = prefix + "dead:remarked"
        # Sorted set of the ids of replay jobs; stream of what operators did.
        self.replays = prefix + "replays"
        self.audit = prefix + "audit"
        # Sorted sets of ids of dead letters, score 0: all, and those with something in common.
        self.all_dead = prefix + "dead:all"

    def receivers(self, id: int) -> str:
        """Set: the keys of the sessions that wait for a message."""
        return f"{self.prefix}to:{id}"

    def marks(self, key: str) -> str:
        """Hash: id of a message -> how far a session's entry has come, if `handed` is not all."""
        return f"{self.prefix}marks:{key}"

    def replay(self, job: str) -> str:
        """Hash: the fields of a replay job."""
        return f"{self.prefix}replay:{job}"

    def journal(self, node: str) -> str:
        """Stream: the frames of a node."""
        return f"{self.prefix}journal:{node}"

    def journal_read(self, node: str) -> str:
        """Hash: name of a reader -> id of the last entry of the journal that it has for good."""
        return f"{self.journal(node)}:read"

    def notes(self, node: str) -> str:
        """Hash: number -> what a frame will tell soon; call -> the one that wrote a frame last."""
        return f"{self.prefix}notes:{node}"

    def pipeline_result(self, name: str) -> str:
        """JSON: what the pipeline has found out last, see docs/pipeline.md."""
        return f"{self.prefix}pipeline:{name}"

    def by_channel(self, channel: str) -> str:
        return f"{self.prefix}dead:channel:{channel}"

    def by_receiver(self, key: str) -> str:
        return f"{self.prefix}dead:receiver:{key}"

    def by_subject(self, subject: str) -> str:
        return f"{self.prefix}dead:subject:{subject}"

    def by_code(self, code: str) -> str:
        return f"{self.prefix}dead:code:{code}"

    def by_fingerprint(self, fingerprint: str) -> str:
        return f"{self.prefix}dead:print:{fingerprint}"

    def indexes(self, letter: DeadLetter) -> tuple[str, ...]:
        """Where a dead letter is listed; the last is the one of its fingerprint."""
        return (
            self.all_dead,
            self.by_channel(letter.channel),
            self.by_receiver(letter.key),
            self.by_subject(letter.subject),
            self.by_code(letter.code),
            self.by_fingerprint(letter.fingerprint),
        )
