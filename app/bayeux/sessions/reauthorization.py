"""Reauthorization: removes subscriptions and messages that a session's rights no longer cover."""

from collections.abc import Collection, Mapping, Sequence

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.owner import SessionOwner
from holdfast.bayeux.state.changed_rights import note_changed_rights, rights_changed_at
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.errors import Refused, Undecided
from holdfast.delivery.basics.feature_records import record_of, with_record, without_record
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.message import Message
from holdfast.delivery.settling.undelivered import Undelivered

# After this many questions, the review checks whether the turn is over.
_QUESTIONS = 16


class Reauthorizations:
    """Starts the reviews of sessions."""

    def __init__(
        self, state: ServerState, owner: SessionOwner, undelivered: Undelivered[Session]
    ) -> None:
        self._state = state
        self._owner = owner
        self._undelivered = undelivered

    def reauthorize(self, session: Session) -> None:
        """Review the session's rights to its subscriptions and queued messages.

        The review starts when the turn ends. Until it is complete, nothing is handed over.
        """
        if session.is_gone:
            return
        at = self._state.hub.recheck_before = self._state.node.stamp()
        note_changed_rights(session, at)
        review = record_of(session.records, Reauthorization)
        if review is None:
            self._begin(session, session.subscriptions)
        else:
            review.begin_anew()

    def recheck(self, message: Message, receivers: Sequence[Session]) -> None:
        """Review receivers again for a message accepted before their reauthorization."""
        for session in receivers:
            is_doubtful = message.id < rights_changed_at(session) and not session.is_gone
            if is_doubtful and record_of(session.records, Reauthorization) is None:
                self._begin(session, ())

    def _begin(self, session: Session, patterns: Collection[str]) -> None:
        review = Reauthorization(
            self._state,
            self._owner,
            undelivered=self._undelivered,
            session=session,
            patterns=patterns,
        )
        session.records = with_record(session.records, review)
        # The session may lose its right to some of its messages.
        session.pauses += 1
        self._state.backlog.add(review.go_on)


class Reauthorization:
    """The review of one session: its subscriptions first, then its queue. The session's record."""

    __slots__ = (
        "_answers",
        "_channels",
        "_has_failed",
        "_may_catch_up",
        "_owner",
        "_patterns",
        "_session",
        "_state",
        "_undelivered",
    )

    def __init__(
        self,
        state: ServerState,
        owner: SessionOwner,
        *,
        undelivered: Undelivered[Session],
        session: Session,
        patterns: Collection[str],
    ) -> None:
        self._state = state
        self._owner = owner
        self._undelivered = undelivered
        self._session = session
        # The subscriptions, and the channels of queued messages, still to be reviewed.
        self._patterns = list(patterns)
        self._channels: list[str] = []
        # The answers so far, by channel or pattern.
        self._answers: dict[str, bool] = {}
        # By channel of queued messages: whether the session may read the history.
        self._may_catch_up: dict[str, bool] = {}
        self._has_failed = False

    def begin_anew(self) -> None:
        """Restart the review, because the rights have changed again."""
        self._patterns = list(self._session.subscriptions)
        self._channels = []
        self._answers.clear()
        self._may_catch_up.clear()

    def go_on(self, now: float) -> bool:
        """Ask some questions. Returns whether any are left."""
        session = self._session
        if not session.is_gone:
            for _ in range(_QUESTIONS):
                if not self._ask_next():
                    break
            else:
                return True
            self._withdraw()
            self._owner.note(session, now)
        session.records = without_record(session.records, Reauthorization)
        session.pauses -= 1
        if session.queue.count:
            self._state.hub.make_ready(session)
        return False

    def _ask_next(self) -> bool:
        """Ask the next question. Returns False if there is none."""
        if self._patterns:
            pattern = self._patterns.pop()
            self._answers[pattern] = self._may_have(pattern, is_subscribed=True)
            if not self._answers[pattern]:
                self._state.subscriptions.lose(self._session, pattern)
            return True
        if not self._channels:
            # Messages on other channels may have arrived in the meantime.
            routed = self._session.queue.routed_channels(self._session.key)
            self._channels = list(routed.difference(self._may_catch_up))
        if not self._channels:
            return False
        channel = self._channels.pop()
        if channel not in self._answers:
            self._answers[channel] = self._is_subscribed(channel) or self._may_have(channel)
        of = self._state.channels.named(channel)
        self._may_catch_up[channel] = self._state.rights.may_catch_up(self._session, of)
        return True

    def _is_subscribed(self, name: str) -> bool:
        channel = self._state.channels.get(name)
        subscriptions = self._session.subscriptions
        return channel is not None and not subscriptions.isdisjoint(channel.lookups)

    def _may_have(self, name: str, *, is_subscribed: bool = False) -> bool:
        """Return whether the session could subscribe to this now.

        What it has subscribed to stays until the backend, if that decides, has been asked again.
        """
        session = self._session
        channel = self._state.channels.get(name)
        if channel is None:
            return False
        message = {"channel": "/meta/subscribe", "subscription": name}
        try:
            self._state.rights.check_system(session, channel, message)
            self._state.rights.check_subscribe(session, channel, message)
        except Undecided:
            questions = self._state.questions
            if questions is None or not is_subscribed:
                return False
            questions.ask_again(session, name)
        except Refused:
            return False
        except BaseException:
            # A policy that fails grants nothing, as for a subscribe, and cannot end the server.
            if not self._has_failed:
                self._state.log.exception("session %s could not be reauthorized", session.key)
            self._has_failed = True
            return False
        return True

    def _withdraw(self) -> None:
        """Remove messages that the session may no longer receive from its queue."""
        denied = _denied(self._answers)
        without_history = _denied(self._may_catch_up)
        if not (denied or without_history):
            return
        queue, key = self._session.queue, self._session.key
        messages = queue.remove_routed(key, denied, without_history)
        if messages:
            self._undelivered.clear_out(self._session, messages, Reason.NOT_ALLOWED)


def _denied(answers: Mapping[str, bool]) -> set[str]:
    return {channel for channel, is_allowed in answers.items() if not is_allowed}
