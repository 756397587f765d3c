"""Adds and removes subscriptions, for clients, operators and restarts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from holdfast.bayeux.limits.quotas import Quotas
from holdfast.bayeux.rights import Rights
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.subscription_details import (
    details_of,
    known_details,
    qos_of_subscriptions,
)
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.identity import SERVER
from holdfast.bayeux.wire.operation import Operation
from holdfast.bayeux.wire.subscribe_qos import PLAIN, SubscribeQos
from holdfast.delivery.basics.channels import Channel, overlaps
from holdfast.delivery.requests.responders import be_silent_on, end_silence_on
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.routing.presence import Presence
from holdfast.delivery.routing.selections import Filter
from holdfast.delivery.shared_queues.work_queues import WorkQueues
from holdfast.settings import Settings


class Subscriptions:
    """Adds and removes subscriptions."""

    def __init__(
        self,
        options: Settings,
        hub: Hub[Session],
        *,
        work_patterns: Sequence[str],
        presence: Presence[Session],
        rights: Rights,
        work: WorkQueues[Session],
        quotas: Quotas,
    ) -> None:
        self._options = options
        self._work_patterns = work_patterns
        self._hub, self._routes, self._counters = hub, hub.routes, hub.counters
        self._presence = presence
        self._rights = rights
        self._work = work
        self._quotas = quotas

    def join(
        self,
        session: Session,
        patterns: Mapping[str, Channel],
        message: Json,
        qos: SubscribeQos = PLAIN,
    ) -> None:
        """Subscribe the session to all of the patterns, or to none.

        The QoS also applies to existing subscriptions. Raises `Refused`.
        """
        more = self.check_join(session, patterns, message, qos)
        self.check_create(session, patterns, message)
        for channel in patterns.values():
            self.add(session, channel, qos)
            if self._presence.is_visible(channel) and session.identity.role != SERVER:
                self._presence.join(channel.name, session)
        if more:
            self._quotas.count_subscriptions(session, more)
        # It may also answer from now on what it did not before.
        self._work.assign_to(session)

    def check_join(
        self,
        session: Session,
        patterns: Mapping[str, Channel],
        message: Json,
        qos: SubscribeQos,
    ) -> int:
        """Check that the session may subscribe to the patterns. Returns how many are new to it.

        This does not include the right to create them. Raises `Refused`.
        """
        if qos.filter is not None:
            self._check_filters(session, qos.filter, patterns)
        if qos.choice:
            self._refuse_choice(patterns, qos.choice)
        more = sum(name not in session.subscriptions for name in patterns)
        if more:
            self._check_room(session, more)
        for channel in patterns.values():
            self._rights.check_system(session, channel, message)
        if not self._rights.are_open:
            for channel in patterns.values():
                self._rights.check_subscribe(session, channel, message)
        return more

    def check_create(
        self, session: Session, patterns: Mapping[str, Channel], message: Json
    ) -> None:
        """Check that the session may create the channels that have no subscription.

        Raises `Refused`.
        """
        if self._rights.are_open:
            return
        for name, channel in patterns.items():
            if name not in self._routes:
                self._rights.check_create(Operation.SUBSCRIBE, session, channel, message)

    def add(self, session: Session, channel: Channel, qos: SubscribeQos) -> None:
        """Add a subscription, or replace the QoS of an existing one."""
        details = known_details(session)
        if details is not None:
            details.lost.pop(channel.name, None)
            details.qos.pop(channel.name, None)
        if qos.filter is not None:
            qos = replace(qos, filter=self._routes.filters.shared(qos.filter))
        selection = qos.selection(session.name) if qos.is_selective else None
        self._hub.subscribe(session, channel, selection)
        session.subscriptions.add(channel.name)
        if qos is not PLAIN and qos != PLAIN:
            details_of(session).qos[channel.name] = qos
            session.drops_outdated |= qos.newest_only
        if qos.responds:
            end_silence_on(session, channel.name)
        else:
            be_silent_on(session, channel.name)

    def _check_filters(
        self, session: Session, filter: Filter, patterns: Mapping[str, Channel]
    ) -> None:
        """Check that subscriptions to these patterns may have the filter. Raises `Refused`."""
        options, filters = self._options, self._routes.filters
        known = qos_of_subscriptions(session)
        others = sum(qos.filter is not None for name, qos in known.items() if name not in patterns)
        if others + len(patterns) > options.max_session_filters:
            most = str(options.max_session_filters)
            raise Refused(ErrorReply.SUBSCRIPTIONS_EXCEEDED, "filter", most)
        if len(filters) >= options.max_filters and not filters.shared(filter).uses:
            raise Refused(ErrorReply.SUBSCRIPTIONS_USED_UP, "filter")

    def _refuse_choice(self, patterns: Iterable[str], option: str) -> None:
        """Refuse an option that lets a receiver choose among the messages of a work queue."""
        for work in self._work_patterns:
            if any(overlaps(work, pattern) for pattern in patterns):
                raise Refused(ErrorReply.DELIVERY_INVALID, "user.illegalArgument", option)

    def _check_room(self, session: Session, more: int) -> None:
        """Check that the session may have this many more subscriptions. Raises `Refused`."""
        options, wanted = self._options, len(session.subscriptions) + more
        if wanted > options.max_subscriptions:
            raise self.too_many()
        most = options.max_total_subscriptions
        # A session that uses up the total must not keep others from subscribing.
        if self._routes.count + more > most and wanted > most // options.max_sessions:
            self._counters.subscriptions_refused += 1
            raise Refused(ErrorReply.SUBSCRIPTIONS_USED_UP)
        self._quotas.check_subscriptions(session, more)

    def lose(self, session: Session, pattern: str) -> None:
        """Remove a subscription without the client's doing. Its next handshake reports it."""
        if pattern in session.subscriptions:
            self.note_lost(session, pattern)
        self.part(session, pattern)

    def note_lost(self, session: Session, pattern: str) -> None:
        """Record that the session lost the subscription, for the next client of a named session."""
        if session.terms is None or not session.terms.is_named:
            return
        lost = details_of(session).lost
        lost[pattern] = False
        if len(lost) > self._options.max_subscriptions:
            # Its client subscribed to more in between, so it was present and knows about the first.
            del lost[next(iter(lost))]

    def part(self, session: Session, pattern: str) -> None:
        """Remove the subscription, if the session has it."""
        if pattern not in session.subscriptions:
            return
        self._hub.unsubscribe(session, pattern)
        session.subscriptions.remove(pattern)
        end_silence_on(session, pattern)
        if self._presence.is_used:
            self._presence.leave(pattern, session)
        details = known_details(session)
        if details is not None:
            details.qos.pop(pattern, None)
        self._work.requeue_new(session)

    def too_many(self) -> Refused:
        """Return the refusal of a subscription beyond the limit."""
        return Refused(ErrorReply.SUBSCRIPTIONS_EXCEEDED, str(self._options.max_subscriptions))
