"""Decides, outside the code, whether what clients saw keeps the promises."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.judges.leases import Leases
from tests.simulation.judges.speakers import Speakers
from tests.simulation.network import End
from tests.simulation.process import Process

if TYPE_CHECKING:
    from tests.simulation.store_site import Tail

# The machine of all clients.
CLIENTS = "clients"
_MOST_TOLD = 10
# With so many digits an id of a client begins, which say where its session is.
_BUCKET = 3
# With so many digits an id of a message ends, which say which shard has accepted it.
_SHARD = 3
# How long after it was settled a message may come again: if its server was killed meanwhile.
_SETTLED_S = 3.0
# How long after it was cut off from the store a server may hand out more, by its own clock, and how
# long that takes at most on a busy machine.
_INSTANT_S = 0.05 + 0.05
# How long before the reply to a subscribe the store may have had it.
_STORED_S = 1.0
# How long after a failover a server may still tell the new primary what it lacks.
_TOLD_S = 15.0


@dataclass(slots=True)
class Publish:
    """A message as its publisher knows it."""

    publisher: str
    serial: int
    channel: str
    begun_at: float
    is_durable: bool = True
    # Whether its publisher does not give up.
    is_repeated: bool = True
    # What the server said, if it accepted the message, and when.
    id: str = ""
    accepted_at: float = inf
    # Nobody gets it after so long.
    lifetime_s: float = inf


class Coming(NamedTuple):
    """That a message came, and from which server."""

    key: str
    server: Process | None
    at: float


class _Repeated(NamedTuple):
    """What came again; when it had come before that, and when a server knew that it was settled."""

    key: str
    came_at: float
    settled_at: float


@dataclass(slots=True)
class Heard:
    """What one receiver got: keys with the ids under which they came, in the order of arrival."""

    is_named: bool
    ids: dict[str, list[str]] = field(default_factory=dict)
    # What came again although no repeat was due.
    repeated: list["_Repeated"] = field(default_factory=list)
    # How each id came, each time.
    came: dict[str, list[Coming]] = field(default_factory=dict)
    # When ids were settled, and by which server: it answered behind the acknowledgement.
    settled: dict[str, tuple[Process | None, float]] = field(default_factory=dict)
    # The keys of what came again after it was settled, because its server had ended too soon, and
    # was forgotten then.
    returned: set[str] = field(default_factory=set)
    # The keys of what the receiver had settled when it forgot all else, if a store has lost that.
    unsure: set[str] = field(default_factory=set)


class Oracle:
    """Collects what clients did and saw, in true time.

    Args:
        now: Returns the true time.
        receivers: Who must hear something.
    """

    def __init__(self, now: Callable[[], float], receivers: Sequence[str]) -> None:
        self.now = now
        self.published: dict[str, Publish] = {}
        self._heard: dict[str, Heard] = {}
        # Since when receivers have their subscriptions, and at which servers they got them.
        self._subscribed: dict[tuple[str, str], tuple[float, Process | None]] = {}
        # When each receiver's last connect was answered, if it ever was.
        self._heard_at = dict.fromkeys(receivers, -inf)
        # Whether what was settled must not come again. Only the store knows that, so a server that
        # ends while it cannot reach the store may forget it.
        self.judges_repeats = False
        # Whether one server at a time speaks to clients.
        self.has_one_speaker = True
        # Returns the shard for whose sessions a server speaks by what it writes to a connection;
        # None if it does not, or if that is not judged.
        self.spoken_for: Callable[[Process, End], int | None] = lambda *_: None
        # The parts of the deployment in which clients have their sessions.
        self.buckets: dict[str, int] = {}
        # Returns which server has a receiver's session.
        self.home_of: Callable[[str], Process | None] = lambda _: self.speaker
        # Whether a message may come to a receiver before an earlier one of its publisher and
        # channel.
        self.may_overtake: Callable[[str, Publish, Publish], bool] = lambda *_: False
        # Whether what this publisher publishes reaches this receiver.
        self.reaches: Callable[[str, str], bool] = lambda *_: True
        # What stores wrote, and lost. Publish keys may be lost with that, but only of messages that
        # were not accepted yet.
        self.lost_tails: Callable[[], Sequence[Tail]] = tuple
        # Whether no replica has what the store has; and when servers of a shard have ended.
        self.has_one_copy = False
        self.ends_of: Callable[[int], Sequence[float]] = lambda _: ()
        # When links between servers may have been lost; and when servers may have lost contact with
        # each other or with clients.
        self.lost_links: list[tuple[float, float]] = []
        self.lost_contacts: list[tuple[float, float]] = []
        # When servers restarted in order.
        self.restarts: list[tuple[float, float]] = []
        # Which servers were cut off from the store, and since when.
        self.cut_off: list[tuple[Process, float]] = []
        self.leases = Leases(CLIENTS)
        # Those that spoke to clients, and for the sessions of each shard.
        self._speakers = Speakers(None, now, self._has_lost)
        self._speakers_of: dict[int, Speakers] = {}

    @property
    def speaker(self) -> Process | None:
        """The server that speaks to clients."""
        return self._speakers.last

    @property
    def had_one_speaker(self) -> bool:
        """Whether no other server has taken the place of one."""
        return not self._speakers.were_several

    # What happens

    def publishes(
        self,
        key: str,
        publisher: str,
        serial: int,
        channel: str,
        *,
        is_durable: bool,
        is_repeated: bool,
    ) -> None:
        """Note that a message is about to be published for the first time."""
        self.published[key] = Publish(
            publisher, serial, channel, self.now(), is_durable, is_repeated
        )

    def accepted(self, key: str, id: str) -> None:
        """Note that the server has accepted a message."""
        publish = self.published[key]
        publish.id, publish.accepted_at = id, min(publish.accepted_at, self.now())

    def begun(self, client: str, client_id: str) -> None:
        """Note the session of a client."""
        self.buckets[client] = bucket_of(client_id)

    def subscribed(self, receiver: str, channel: str) -> None:
        """Note that the server has accepted a subscription."""
        self._subscribed.setdefault((receiver, channel), (self.now(), self.home_of(receiver)))

    def received(self, receiver: str, key: str, id: str, *, is_named: bool) -> None:
        """Note that a message has arrived."""
        heard = self._heard.setdefault(receiver, Heard(is_named))
        ids = heard.ids.setdefault(key, [])
        if not is_named:
            # Without acknowledgements nothing is sent twice.
            if ids:
                heard.repeated.append(_Repeated(key, self.now(), self.now()))
            ids.append("")
            return
        if id not in ids:
            ids.append(id)
        if (known := heard.settled.get(id)) is not None:
            (settler, at), before = known, heard.came[id][-1]
            is_late = self.judges_repeats and self.now() - at > _SETTLED_S
            is_known = before.server is settler or not self._is_of_an_instant(before)
            if is_late or (is_known and settler is self.home_of(receiver)):
                heard.repeated.append(_Repeated(key, before.at, at))
                # It must be settled once more.
                del heard.settled[id]
        heard.came.setdefault(id, []).append(Coming(key, self.home_of(receiver), self.now()))

    def _is_of_an_instant(self, coming: Coming) -> bool:
        """Return whether the store may not know that this was handed out.

        The acknowledgement then has no effect at another server.
        """
        return any(
            server is coming.server and at <= coming.at <= at + _INSTANT_S
            for server, at in self.cut_off
        )

    def settled(self, receiver: str, ids: Sequence[str], again: Sequence[str] = ()) -> None:
        """Note that the server knows that the receiver has these messages.

        It did not know that of those that came again with the reply. Only a server that has not
        handed them out itself may have forgotten them.
        """
        for id in ids:
            heard, server = self._heard[receiver], self.home_of(receiver)
            if id not in again:
                # Anew if it has come again since it was settled.
                heard.settled[id] = server, self.now()
            elif (before := heard.came[id][-2]).server is server:
                heard.repeated.append(_Repeated(before.key, before.at, before.at))

    def forgets(self, receiver: str, *, but: Collection[str]) -> None:
        """Note that a receiver crashes: what it has not acknowledged must come again.

        Args:
            but: What a server may have an acknowledgement of that it did not answer.
        """
        heard = self._heard.get(receiver)
        if heard is not None:
            # What has come again since then was not settled after all.
            again = {id for id, one in heard.settled.items() if heard.came[id][-1].at > one[1]}
            heard.returned |= {heard.came[id][-1].key for id in again if self._is_untold(heard, id)}
            heard.settled = {id: one for id, one in heard.settled.items() if id not in again}
            unsure = [id for id in heard.settled if self._is_unsure(heard, id)]
            # If a server had it, the store may have lost it all the same.
            unsure += [id for id in but if self.may_have_lost(heard.came[id][-1].at, self.now())]
            heard.unsure |= {heard.came[id][-1].key for id in unsure}
            known = {*heard.settled, *but}
            kept = {key: [id for id in ids if id in known] for key, ids in heard.ids.items()}
            heard.ids = {key: ids for key, ids in kept.items() if ids}

    def _is_untold(self, heard: Heard, id: str) -> bool:
        """Return whether a server ended before it told the store that this was settled."""
        server, at = heard.settled[id]
        return server is not None and server.ended_at <= at + _SETTLED_S

    def _is_unsure(self, heard: Heard, id: str) -> bool:
        """Return whether the store may have lost that this was settled, so that it comes again."""
        at = heard.settled[id][1]
        return any(tail.begin - _STORED_S <= at <= tail.end for tail in self.lost_tails())

    def hears(self, receiver: str) -> None:
        """Note that a connect was answered."""
        self._heard_at[receiver] = self.now()

    def spoke(self, process: Process, end: End, data: bytes) -> None:
        """Note what a server wrote to a client: nobody speaks once another one has spoken."""
        self.leases.wrote(process, end, data)
        if b'"successful":true' not in data and b'"data":' not in data:
            return
        if self.has_one_speaker:
            if end.peer.name[0] == CLIENTS:
                self._speakers.spoke(process, end.label)
        elif (shard := self.spoken_for(process, end)) is not None:
            if (its := self._speakers_of.get(shard)) is None:
                its = Speakers(shard, self.now, self._has_lost)
                self._speakers_of[shard] = its
            its.spoke(process, end.label)

    def _has_lost(self, at: float) -> bool:
        """Return whether a store has lost what it was told then."""
        return any(tail.begin <= at <= tail.end for tail in self.lost_tails())

    # What it means

    def is_drained(self, since: float) -> bool:
        """Return whether everything has arrived everywhere, and connects are answered again."""
        return not self._lacking() and not self._unheard(since)

    def violations(self, since: float) -> list[str]:
        """Return all broken promises.

        Args:
            since: When the last fault ended.
        """
        return [
            *self._speakers.violations,
            *(each for its in self._speakers_of.values() for each in its.violations),
            *self.leases.violations,
            *self._lacking(),
            *self._unheard(since),
            *self._doubled(),
            *self._disordered(),
        ][:_MOST_TOLD]

    def _unheard(self, since: float) -> list[str]:
        late = [receiver for receiver, at in self._heard_at.items() if at < since]
        return [f"liveness: {receiver} hears nothing" for receiver in late]

    def _lacking(self) -> list[str]:
        found = []
        for key, publish in self.published.items():
            if not publish.is_durable:
                continue
            if not publish.id:
                if publish.is_repeated:
                    found.append(f"liveness: {key} is not accepted")
                continue
            for (receiver, channel), (since, server) in self._subscribed.items():
                if channel != publish.channel or since > publish.begun_at:
                    continue
                if not self.reaches(publish.publisher, receiver):
                    continue
                heard = self._heard.get(receiver)
                if (heard is not None and key in heard.ids) or self.may_be_gone(publish):
                    continue
                # Only publishes wait for replicas: a failover may have lost the subscription.
                if not self.may_have_forgotten(server, since - _STORED_S, since):
                    found.append(f"S3: {receiver} lacks {key}, accepted as {publish.id}")
        return found

    def _doubled(self) -> list[str]:
        found = []
        for key, publish in self.published.items():
            ids = {id for heard in self._heard.values() for id in heard.ids.get(key, ())}
            ids = (ids | {publish.id}) - {""}
            if len(ids) > 1 and not self.is_in_doubt(publish):
                found.append(f"S4: {key} is several messages: {', '.join(sorted(ids))}")
        for receiver, heard in self._heard.items():
            found += [
                f"S4: {receiver} got {each.key} again"
                for each in heard.repeated
                if not self._may_repeat(heard, each)
            ]
        return found

    def _may_repeat(self, heard: Heard, repeated: _Repeated) -> bool:
        """Return whether a failover may have lost the key, or that the message was settled.

        Without acknowledgements, the confirmation of a door may also be lost, with its link.
        """
        if not heard.is_named:
            publish = self.published[repeated.key]
            is_lost = any(
                begin <= repeated.came_at and publish.begun_at <= end
                for begin, end in self.lost_links
            )
            return is_lost or self.is_in_doubt(publish)
        return self.may_have_lost(repeated.came_at, repeated.settled_at)

    def is_in_doubt(self, publish: Publish) -> bool:
        """Return whether a failover may have lost the key before the publisher had an answer."""
        return self.may_have_lost(publish.begun_at, publish.accepted_at)

    def may_be_gone(self, publish: Publish) -> bool:
        """Return whether nobody knows an accepted message: its only store has lost it.

        Its server, which had accepted it, has ended before it could tell the store again.
        """
        shard = shard_of(publish.id)
        return self.has_one_copy and any(
            tail.shard in (None, shard)
            and publish.begun_at <= tail.end
            and tail.begin <= publish.accepted_at
            and any(tail.begin <= at <= tail.back_at + _TOLD_S for at in self.ends_of(shard))
            for tail in self.lost_tails()
        )

    def may_have_lost(self, since: float, until: float) -> bool:
        """Return whether a failover lost something that was written between these times."""
        return any(since <= tail.end and tail.begin <= until for tail in self.lost_tails())

    def may_have_forgotten(self, server: Process | None, since: float, until: float) -> bool:
        """Return whether nobody knows what a server wrote between these times.

        A failover may have lost it, and the server has ended, perhaps before it has told the new
        primary what that lacks.
        """
        ended_at = inf if server is None else server.ended_at
        return any(
            since <= tail.end and tail.begin <= until and ended_at <= tail.back_at + _TOLD_S
            for tail in self.lost_tails()
        )

    def was_calm(self, since: float, until: float) -> bool:
        """Return whether nothing went wrong between these times that ends a contact."""
        return not _overlaps(since, until, self.lost_contacts)

    def has_restarted(self, since: float, until: float) -> bool:
        """Return whether servers restarted between these times."""
        return _overlaps(since, until, self.restarts)

    def _disordered(self) -> list[str]:
        found = []
        for receiver, heard in self._heard.items():
            # With each message, whether it must stay settled.
            last: dict[tuple[str, str], list[tuple[Publish, bool]]] = {}
            for key in heard.ids:
                publish = self.published[key]
                if not publish.id or key in heard.returned:
                    # Its publisher gave it up, and so did not wait for it before the next one. Or
                    # it came in its order before.
                    continue
                others = last.setdefault((publish.publisher, publish.channel), [])
                later = [each for each in others if publish.serial < each[0].serial]
                if any(
                    not self.may_overtake(receiver, publish, each)
                    for each, is_sure in later
                    if is_sure
                ):
                    found.append(f"S5: {receiver} got {key} behind a later one")
                # All that a message may be behind.
                others[:] = [*later, (publish, key not in heard.unsure)]
        return found


def bucket_of(client_id: str) -> int:
    """Return the part of the deployment in which the session with this id is."""
    return int(client_id[:_BUCKET])


def shard_of(message_id: str) -> int:
    """Return the shard that has accepted the message with this id."""
    return int(message_id[-_SHARD:])


def _overlaps(since: float, until: float, times: Iterable[tuple[float, float]]) -> bool:
    return any(since <= end and begin <= until for begin, end in times)
