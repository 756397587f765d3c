"""Publishes to channels with a home: that shard orders their messages and keeps their histories."""

from collections.abc import Callable
from functools import partial

from holdfast.bayeux.publish.answering_others import AnsweringOthers
from holdfast.bayeux.publish.channel_order import ChannelOrder, Turn
from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.publish.home_call import PUBLISHED, asked_of_home, publish_in
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.publish.requests import take_outcome
from holdfast.bayeux.publish.results import Result, State, refusal
from holdfast.bayeux.state.calls import Answer, Asker, Asking, Heard, said_by
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.messages.crossing import Spared
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestStep
from holdfast.delivery.ports.homes import HomesPort
from holdfast.delivery.requests.of_others import Asked
from holdfast.delivery.shared_queues.work_queues import key_of_queue
from holdfast.delivery.topics.configured import Topic, TopicRecord
from holdfast.delivery.topics.counting import topic_of

# Publishes an encoded event in this shard. Raises `Refused`. Returns the outcome, or None if the
# publish is told later.
PublishHere = Callable[[EventPublish, bytes], PersistOutcome | None]


class AtHome:
    """Sends publishes to the homes of their channels, and carries out the publishes of others."""

    def __init__(
        self,
        state: ServerState,
        homes: HomesPort,
        order: ChannelOrder,
        *,
        requests: AnsweringOthers,
        publish_here: PublishHere,
    ) -> None:
        self._state, self._homes, self._order = state, homes, order
        self.requests = requests
        self._publish_here = publish_here
        # By topic: how many messages that are on their way to the store have saved it, and the
        # record that was saved last.
        self._drafts: dict[str, tuple[int, TopicRecord]] = {}
        state.calls.handle(PUBLISHED, self._carry_out)

    # For clients here

    def send(
        self, publish: EventPublish, wire: bytes, home: int, *, echoes: bool
    ) -> PersistOutcome | None:
        """Send the encoded event. Returns the outcome, or None if the publish is told later."""
        if not self._homes.may_send(home):
            return PersistOutcome.REFUSED
        sender, qos = publish.sender, publish.qos or Qos()
        name = "" if sender is None else sender.name
        # It gets the id that the home gives.
        draft = Message(b"", channel=publish.channel.name, sender=name)
        if qos.request is not None:
            # Until then, nothing else has this one.
            draft.id = self._state.node.stamp()
            qos.request.is_work, qos.request.unheard = True, (home,)
            if qos.request.is_durable:
                qos.request.id = draft.id
        qos.qualify(draft, sender)
        asked = asked_of_home(publish, draft, wire, echoes=echoes)
        answered = partial(self._answered, publish, draft)
        ask = partial(self._ask, home, asked, answered)
        self._order.take(Turn(draft.channel, partial(self._order.ask, qos.request, ask)))
        return None

    def _ask(self, home: int, asked: Asking, answered: Heard, _: Turn) -> bool:
        self._state.calls.send(home, PUBLISHED, asked, answered)
        # The next one may follow at once.
        return True

    def _answered(self, publish: EventPublish, draft: Message, answer: Answer | None) -> None:
        outcome = PersistOutcome.UNKNOWN
        if answer is not None:
            outcome = self._outcome(publish, draft, answer)
        request = None if publish.qos is None else publish.qos.request
        if request is not None:
            if outcome is PersistOutcome.REFUSED and request.end is not None:
                # The requester was told how it has ended, and must not hear of a second outcome.
                outcome = PersistOutcome.UNKNOWN
            if outcome is PersistOutcome.KEPT:
                request.id = draft.id
            # The queue of the channel stands for all that may answer, as long as it has the work:
            # which sessions have it, only their shards know.
            queue = key_of_queue(draft.channel)
            take_outcome(self._state.requests, request, (queue,), outcome)
            if outcome is PersistOutcome.KEPT and request.requester.is_durable:
                # It must be stored, too, before it is accepted.
                self._state.store.after(partial(publish.over, outcome))
                return
        publish.over(outcome)

    def _outcome(self, publish: EventPublish, draft: Message, answer: Answer) -> PersistOutcome:
        found = said_by(Result, answer)
        if found is None:
            publish.refused = Refused(ErrorReply.SERVER_FAULT)
            return PersistOutcome.REFUSED
        draft.id = found.id
        if publish.qos is not None:
            publish.qos.outcomes = found.outcomes
        match found.state:
            case State.KEPT:
                return PersistOutcome.KEPT
            case State.REPEATED:
                return PersistOutcome.REPEATED
            case State.UNCHANGED:
                if publish.qos is not None:
                    # There is no message to confirm.
                    publish.qos.message = None
                return PersistOutcome.KEPT
            case State.REFUSED:
                publish.refused = self._refused(publish, found)
            case State.UNKNOWN:
                return PersistOutcome.UNKNOWN
            case _:
                # The store of the home does not take it.
                pass
        return PersistOutcome.REFUSED

    def _refused(self, publish: EventPublish, found: Result) -> Refused:
        if publish.sender is not None and found.error == ErrorReply.BUDGET_EXCEEDED.name:
            # The sender is here, and so are the books of who exceeds a quota.
            quotas = self._state.quotas
            return quotas.too_much_waits(publish.sender, found.args[0], found.outcomes)
        return found.refused

    # For other shards

    def _carry_out(self, asking: Asking, asker: Asker, now: float) -> None:
        """Publish what another shard asks for, and answer."""
        publish, wire, spared, work = publish_in(asking, asker, self._state.channels, now)
        if work is not None and work.deadline_ms <= self._state.node.now_ms():
            asker.answer(Result(State.NOT_STORED).to_answer())
            return
        qos = publish.qos or Qos()
        if self._state.routes.selecting and qos.promised is not None:
            publish.select_as_of(qos.promised.sender)
        asked = _Asked(self, asker, publish, spared=spared, work=work)
        publish.prepared = asked.prepare
        # Unlike `done`, it is not called before the outcome is certain.
        publish.step = RequestStep(NO_FIELDS, asked.known)
        publish.done = asked.done
        try:
            outcome = self._publish_here(publish, wire)
        except Refused as refused:
            publish.refused = refused
            outcome = PersistOutcome.REFUSED
        if outcome is not None:
            asked.known(outcome)

    def save_draft(self, message: Message) -> Topic | None:
        """Save the topic that a message makes before the message, which answers.

        Otherwise, a kill just after the answer would leave a message without its topic.
        """
        topics, draft = self._state.topics, topic_of(message)
        if draft is None or draft.is_configured:
            return None
        draft.stored = topics.record_of_draft(draft)
        if draft.stored is None:
            return None
        drafts, _ = self._drafts.get(draft.name, (0, None))
        self._drafts[draft.name] = drafts + 1, draft.stored
        self._state.store.save_topics({draft.name: draft.stored})
        return draft

    def end_draft(self, draft: Topic, outcome: PersistOutcome) -> None:
        """Correct the stored record of a topic when no message that has saved it is on its way.

        It is removed if no message that makes the topic is stored, or may yet be.
        """
        drafts, saved = self._drafts.pop(draft.name)
        if drafts > 1:
            self._drafts[draft.name] = drafts - 1, saved
            return
        topics = self._state.topics
        topic = topics.get(draft.name)
        if topic is not None and topic.is_configured:
            if topic.stored != saved:
                topic.stored = topics.record(topic)
                self._state.store.save_topics({draft.name: topic.stored})
        elif outcome not in (PersistOutcome.KEPT, PersistOutcome.UNKNOWN):
            self._state.store.save_topics({draft.name: None})


class _Asked:
    """A publish for another shard, which is answered once."""

    def __init__(
        self,
        at_home: AtHome,
        asker: Asker,
        publish: EventPublish,
        *,
        spared: str,
        work: Asked | None,
    ) -> None:
        self._at_home = at_home
        self._asker = asker
        self._spared = spared
        self._work = work
        # The topic that the message makes, if it was saved.
        self._draft: Topic | None = None
        # None once it is answered: the publish refers to this object, and a cycle would wait for
        # the garbage collector.
        self._publish: EventPublish | None = publish

    def prepare(self, message: Message) -> None:
        """Let the call that stores the message answer."""
        publish = self._publish
        if publish is None:
            return
        self._asker.answer_with(message, _kept(publish).to_answer())
        self._draft = self._at_home.save_draft(message)
        if self._spared:
            Spared((self._spared,)).mark(message)
        if self._work is not None:
            is_kept = publish.persistent is not False
            self._at_home.requests.queue(message, self._work, is_kept=is_kept)

    def done(self, outcome: PersistOutcome) -> None:
        """Answer, unless a message has no certain outcome yet."""
        is_unchanged = self._publish is not None and self._publish.is_unchanged
        if outcome is not PersistOutcome.UNKNOWN or is_unchanged:
            self.known(outcome)

    def known(self, outcome: PersistOutcome) -> None:
        """Answer with the certain outcome."""
        publish, self._publish = self._publish, None
        if publish is None:
            return
        if self._work is not None and outcome is not PersistOutcome.KEPT:
            self._at_home.requests.forget(self._work)
        if self._draft is not None:
            self._at_home.end_draft(self._draft, outcome)
        if publish.refused is not None:
            self._asker.answer(refusal(publish.refused).to_answer())
        elif publish.is_unchanged:
            # There is no message.
            self._asker.answer(Result(State.UNCHANGED).after(outcome).to_answer())
        elif outcome is PersistOutcome.KEPT:
            self._asker.answer_kept(publish.message, _kept(publish).to_answer())
        else:
            found = _kept(publish).after(outcome, publish.message)
            self._asker.answer(found.to_answer())


def _kept(publish: EventPublish) -> Result:
    outcomes = (publish.qos or Qos()).outcomes
    return Result(State.KEPT, publish.message.id, outcomes=outcomes)
