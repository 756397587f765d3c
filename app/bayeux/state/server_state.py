"""The parts of one server that other parts use: options, sessions, routes."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from holdfast.bayeux.extending.base import SessionExtension
from holdfast.bayeux.extending.error_handlers import ErrorHandlers
from holdfast.bayeux.extending.installed import InstalledExtensions
from holdfast.bayeux.limits.admission import Admission
from holdfast.bayeux.limits.budgets import Budgets
from holdfast.bayeux.limits.quotas import Quotas
from holdfast.bayeux.rights import Rights
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.backlog import Backlog, Step
from holdfast.bayeux.state.calls import Calls
from holdfast.bayeux.state.channel_rules import ChannelRules
from holdfast.bayeux.state.cursors import CursorForm
from holdfast.bayeux.state.phase import Phase
from holdfast.bayeux.state.presence_events import PresenceEvents
from holdfast.bayeux.state.request_events import RequestEvents
from holdfast.bayeux.state.service_channels import Services
from holdfast.bayeux.state.session_registry import Sessions, SharedQueueSessions
from holdfast.bayeux.state.subscriptions import Subscriptions
from holdfast.bayeux.state.system_events import HoldEvents, SystemEvents
from holdfast.bayeux.state.topic_changes import TopicChanges
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.bayeux.wire.codec import Json, RequestLimits
from holdfast.bayeux.wire.errors import ErrorReply
from holdfast.delivery.basics.channels import HELD_ROW, Channels, Kind
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.notices import NoticeKind, Notices
from holdfast.delivery.guard.holds import Guard, GuardLimits
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.delivery.ports.ledger import Ledger
from holdfast.delivery.ports.refused_publishes import RefusedPublishes
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.queues.queue import QueueLimits
from holdfast.delivery.requests.outstanding import Requests
from holdfast.delivery.routing.histories import Histories, HistoryLimits
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.routing.presence import Presence
from holdfast.delivery.routing.routes import Routes
from holdfast.delivery.shared_queues.places import WaitingPlaces
from holdfast.delivery.shared_queues.shared_queues import SharedQueueLimits
from holdfast.delivery.shared_queues.subjects import Subjects
from holdfast.delivery.shared_queues.work_queues import WorkQueues
from holdfast.delivery.topics.configured import Topics
from holdfast.delivery.topics.sender_quota import SenderQuota
from holdfast.settings import Settings

if TYPE_CHECKING:
    from holdfast.bayeux.state.backend_figures import BackendFigures
    from holdfast.bayeux.state.questions_port import QuestionsPort
    from holdfast.bayeux.state.waiting_readers import WaitingReader
    from holdfast.bayeux.state.webhook_figures import WebhookFigures
    from holdfast.delivery.ports.homes import HomesPort
    from holdfast.delivery.ports.neighbours import Neighbours
    from holdfast.delivery.ports.other_shards import OthersPort
    from holdfast.delivery.routing.settling_port import SettlingPort

Outcome = SessionExtension | BaseException | None


class GivenUp(Exception):
    """Work was given up, because this server leaves, or because it took too long."""


class RunLater(Protocol):
    """Awaits work outside the core, with a timeout; calls back with its outcome and the time."""

    def __call__(
        self, work: Awaitable[object], done: Callable[[Outcome, float], None], /
    ) -> None: ...


class ServerState:
    """Creates the parts that need no session life. Ends no sessions and answers no requests."""

    # What the other shards are, and which of them has what; None if there are none.
    homes: "HomesPort | None"
    _others: "OthersPort | None"
    # Requests that wait for messages of histories, of any shard, by id.
    readers: "dict[str, WaitingReader]"
    # The webhooks that this process calls, by name.
    webhooks: "dict[str, WebhookFigures]"
    # How the backend has answered; None if no application decides about clients.
    backend: "BackendFigures | None"
    # What asks it; None as well.
    questions: "QuestionsPort | None"

    def __init__(
        self,
        options: Settings,
        *,
        shards: int,
        client_ids: ClientIds,
        random: Callable[[], float],
        on_ready: Callable[[], None],
        run_later: RunLater,
        node: Node,
        store: StorePort,
        epoch: str,
        journal: DeliveryJournal,
        is_turn_over: Callable[[], bool],
        role_of: Callable[[str], str],
        settling: "SettlingPort[Session]",
        neighbours: "Neighbours | None",
    ) -> None:
        self.log = logging.getLogger("holdfast.bayeux")
        # Each shard admits its part of what one address may do.
        self.options, self.shards = options, shards
        self.client_ids, self.node = client_ids, node
        self.request_limits, self.queue_limits = (
            RequestLimits(options),
            QueueLimits(options.max_queue, options.max_queue_bytes),
        )
        self.run_later, self._on_ready = run_later, on_ready
        # Returns whether divisible work should continue in a later turn.
        self.is_turn_over = is_turn_over
        # Whether the web layer already knows that the turn must end with a `flush`.
        self.is_awake, self.phase = False, Phase.SERVING
        # How many handshakes wait for asynchronous extensions.
        self.handshakes_pending = 0
        shard, self.homes, self._others = neighbours or (None, None, None)
        # The epoch identifies the store in cursors: another store has another one.
        self.calls, self.epoch = Calls(self.homes, self.log), epoch
        self._cursor_forms = self._forms_of_cursors()
        self.journal, self.backlog = journal, Backlog(self.wake, is_turn_over)
        self.channels = Channels(options.max_channel_length, options.max_channel_segments)
        self.rules = ChannelRules(self.channels, options)
        self.guard, self.notices = self._guard(), Notices(self._noticed)
        self.refused_publishes = RefusedPublishes(journal)
        # Sessions with a lazy message of this turn, and its delay in seconds.
        self.lingering: list[tuple[Session, float]] = []
        self.store, self.ledger = store, Ledger(store, journal, node.read)
        self.routes, self.counters = Routes[Session](), self.ledger.counters
        self.histories = self._histories()
        self.topic_changes = TopicChanges(self.backlog, store, self.histories, node)
        self.topics = self._topics()
        self.hub = self._hub(settling)
        self.system_events = SystemEvents(self.channels, self.hub, node=node, backlog=self.backlog)
        self.keeps_history = any(rule.history is not None for rule in self.rules.all)
        self.presence_events = PresenceEvents(
            self.channels, self.routes, self.backlog, self.system_events
        )
        self.presence: Presence[Session] = Presence(
            is_used=any(rule.has_presence for rule in self.rules.all),
            by_rule=self.rules.has_presence,
            stamp=node.stamp,
            changed=self.presence_events.note,
        )
        self.sessions = Sessions(client_ids, first=node.stamp() // 1000, shard=shard)
        self.hold_events = HoldEvents(self.channels, self.system_events, self.sessions)
        self.waiting_places = self._waiting_places()
        self.subjects, self.work = self.waiting_places.subjects, self.waiting_places.work
        self.admission = Admission(float(options.handshake_rate), random)
        self.budgets = Budgets(options, self.admission, self.notices, shards=shards)
        self.quotas = Quotas(
            options,
            self.sessions.usages,
            shards=shards,
            node=node,
            admission=self.admission,
            notices=self.notices,
        )
        self.rights, self.installed = Rights(self.channels, role_of), InstalledExtensions()
        self.request_events = RequestEvents(
            self.hub, store, channels=self.channels, installed=self.installed, node=node
        )
        self.requests: Requests[Session] = Requests(
            journal,
            begin=self.backlog.add,
            save=store.save_requests,
            announce_end=self.request_events.announce_end,
        )
        self.subscriptions = Subscriptions(
            options,
            self.hub,
            work_patterns=self.rules.work_patterns,
            presence=self.presence,
            rights=self.rights,
            work=self.work,
            quotas=self.quotas,
        )
        self.readers, self.webhooks, self.backend, self.questions = {}, {}, None, None
        self.services, self.error_handlers = Services(self.channels), ErrorHandlers(self.channels)

    def _forms_of_cursors(self) -> list[CursorForm]:
        has_history = None if self._others is None else self._has_history
        return [CursorForm(self.epoch, has_history, has_replay_ids=has) for has in (False, True)]

    def _noticed(self, kind: "NoticeKind", about: str, text: str) -> None:
        self.hold_events.noticed(kind, about, text)

    def _hub(self, settling: "SettlingPort[Session]") -> Hub[Session]:
        return Hub(
            on_ready=self.wake,
            linger=self._linger,
            store=self.store,
            settling=settling,
            histories=self.histories,
            ledger=self.ledger,
            routes=self.routes,
            topics=self.topics,
            notices=self.notices,
            others=self._others,
            held=self.guard.held,
        )

    def _guard(self) -> Guard:
        is_used = any(rule.is_guarded for rule in self.rules.all)
        options, others = self.options, self._others
        limits = GuardLimits(
            window_s=options.guard_window / 1000,
            min_receivers=options.guard_receivers,
            min_messages=options.guard_messages,
            grace_s=options.guard_window / 12_000,
            first_pause_s=options.guard_retry / 1000,
        )
        on_change = None if others is None else partial(_tell_hold, others)
        return Guard(self.rules.is_guarded, limits, is_used=is_used, on_change=on_change)

    def _histories(self) -> Histories:
        options, stamp = self.options, self.node.stamp
        limits = HistoryLimits(
            entries=options.max_history,
            bytes=options.max_history_bytes,
            share_entries=options.quota_history,
            share_bytes=options.quota_history_bytes,
        )
        return Histories(limits, self.store, stamp(), stamp, stores_all=self.rules.stores_all)

    def _topics(self) -> Topics:
        options = self.options
        return Topics(
            self.routes.__contains__,
            self.rules.topic,
            most=options.max_topics,
            makers=SenderQuota(options.quota_topics, 0),
            are_used=any(rule.topic for rule in self.rules.all),
            on_change=self.topic_changes.note,
        )

    def _waiting_places(self) -> WaitingPlaces[Session]:
        options, hub = self.options, self.hub
        owner = SharedQueueSessions(hub, self.sessions, self.node)
        senders = SenderQuota(options.quota_addressed, options.quota_addressed_bytes)
        of_subjects = SharedQueueLimits(
            options.max_subject_queue, options.max_subject_queue_bytes, options.max_subject_queues
        )
        of_work = SharedQueueLimits(
            options.max_work_queue, options.max_work_queue_bytes, options.max_work_queues
        )
        return WaitingPlaces(
            Subjects(hub, owner, of_subjects, senders),
            WorkQueues(
                hub,
                owner,
                limits=of_work,
                senders=senders,
                channels=self.channels,
                is_used=bool(self.rules.work_patterns),
            ),
        )

    @property
    def is_stopping(self) -> bool:
        """Whether the server ends, and its sessions with it."""
        return self.phase is Phase.STOPPING

    @property
    def is_leaving(self) -> bool:
        """Whether another server is about to go on with the sessions, or does so already."""
        return self.phase is Phase.LEAVING or self.phase is Phase.LEFT

    def wake(self) -> None:
        """Ensure that the turn ends with a `flush`."""
        if not self.is_awake:
            self.is_awake = True
            self._on_ready()

    def _linger(self, session: Session, message: Message) -> None:
        """Limit, in `flush`, the delay of a lazy message."""
        self.lingering.append((session, message.linger_s or 0.0))
        self.wake()

    def when_kept(self, step: Step) -> None:
        """Run the step at the end of the turn in which the store has answered all earlier calls."""
        self.store.after(partial(self.backlog.at_turn_end, step))

    def cursor_form(self, *, has_replay_ids: bool) -> CursorForm:
        """Return the form in which sessions get cursors."""
        return self._cursor_forms[has_replay_ids]

    def note_refused(self, message: Json, error: ErrorReply) -> None:
        """Count a refused message if it is a publish."""
        name = message.get("channel")
        channel = self.channels.get(name) if type(name) is str else None
        if channel is None:
            self.refused_publishes.note(error.reason, "")
        elif channel.kind is not Kind.META:
            self.refused_publishes.note(error.reason, channel.name)

    def log_fault(self, session: Session) -> None:
        """Log that serving a session failed. Call it in an `except` clause."""
        # A failure of one session must not affect the sessions after it.
        self.log.exception("session %s could not be served", session.key)

    def _has_history(self, name: str) -> bool:
        """Return whether this shard or another one may keep messages of the channel."""
        channel, others = self.channels.get(name), self._others
        if channel is None:
            return False
        is_topic = others is not None and name in others.topics
        return is_topic or self.rules.of(channel).history is not None

    def keep_history(self) -> None:
        """Let a channel keep messages although its rule does not say so."""
        self.keeps_history = True


def _tell_hold(others: "OthersPort", channel: str, is_held: bool) -> None:
    change = others.add_row if is_held else others.remove_row
    change(HELD_ROW + channel)
