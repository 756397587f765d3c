"""`/meta/subscribe` and `/meta/unsubscribe`: all channels of a message, or none."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.bayeux.replies.answers import Answers
from holdfast.bayeux.replies.pending import begin_pending, finish_later, finish_when_kept
from holdfast.bayeux.rights import BY_POLICY
from holdfast.bayeux.session import Exchange, Session, TurnOver
from holdfast.bayeux.state.backlog import Step
from holdfast.bayeux.state.changed_session import ChangedSession
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.unstored_replies import begin_reply, end_reply
from holdfast.bayeux.subscribe.catching_up import CatchUp
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.known_options import QosInvalid
from holdfast.bayeux.wire.reserved import refuse_replies
from holdfast.bayeux.wire.starts import Starts, initial_update, starts_of
from holdfast.bayeux.wire.subscribe_qos import PLAIN, SubscribeQos
from holdfast.delivery.basics.channels import REPLIES, Channel, Kind
from holdfast.delivery.requests.reply_channels import reply_channel_of

if TYPE_CHECKING:
    from holdfast.bayeux.subscribe.agreeing import AgreedSubscriptions, JoiningPatterns
    from holdfast.bayeux.subscribe.far_histories import FarHistories, FarReading

_META = frozenset(
    f"/meta/{name}" for name in ("handshake", "connect", "subscribe", "unsubscribe", "disconnect")
)
# How many channel names are handled between two checks of the turn budget.
_NAMES = 64
# How many messages from histories may travel with the reply although the turn is over.
_FEW = 100


class _Progress:
    """The progress of a subscribe or unsubscribe that takes several turns."""

    def __init__(self) -> None:
        self.channels: list[Channel] = []
        self.catch_up: CatchUp | None = None
        # Whether the messages from histories are queued, so that only the reply is left to send.
        self.has_caught_up = False
        # What is new to the session, if other shards must know of it.
        self.joining: JoiningPatterns | None = None


def _progress(exchange: Exchange) -> _Progress:
    progress: _Progress | None = exchange.take_progress()
    return progress or _Progress()


class SubscribeHandler:
    """Handles clients' subscribes and unsubscribes."""

    def __init__(
        self, state: ServerState, answers: Answers, far: "FarHistories | None" = None
    ) -> None:
        self._state = state
        self._answers = answers
        # Set at the first durable subscribe, if there are other shards.
        self._agreed: AgreedSubscriptions | None = None
        # The histories of other shards, if there are any.
        self._far = far

    def subscribe(self, exchange: Exchange, session: Session, message: Json, reply: Json) -> bool:
        """Add subscriptions; existing ones are no error. Returns whether the reply is complete."""
        state, progress = self._state, _progress(exchange)
        channels = self._channels(exchange, message, progress)
        catch_up = progress.catch_up
        if catch_up is None:
            patterns = self._patterns(session, channels)
            qos, starts = PLAIN, None
            if message.get("ext"):
                qos, initial = subscribe_qos(session, message)
                starts = starts_of(message["ext"].get("replay"), state.epoch) or initial
            if starts is None:
                self._prepare(session, patterns, progress)
                state.subscriptions.join(session, patterns, message, qos)
            else:
                # Before the histories are read: a session without the right must not make the
                # server read them.
                state.subscriptions.check_join(session, patterns, message, qos)
                catch_up = self._begin(session, starts, qos, patterns=patterns, message=message)
                progress.catch_up = catch_up
        if catch_up is not None:
            try:
                if self._reads_far(catch_up, progress, exchange, message=message, reply=reply):
                    return False
                self._catch_up(catch_up, progress, exchange, session=session, message=message)
            except TurnOver:
                exchange.progress = progress
                raise
            self._say_caught_up(catch_up, exchange, reply)
        return self._confirm(exchange, session, message, reply, subscribed=progress)

    def _begin(
        self,
        session: Session,
        starts: Starts,
        qos: SubscribeQos,
        *,
        patterns: Mapping[str, Channel],
        message: Json,
    ) -> CatchUp:
        far = self._far
        return CatchUp(
            self._state,
            session,
            starts=starts,
            qos=qos,
            patterns=patterns,
            message=message,
            is_here=None if far is None else far.is_here,
            reads=None if far is None else far.read_here(patterns),
        )

    def _reads_far(
        self,
        catch_up: CatchUp,
        progress: _Progress,
        exchange: Exchange,
        *,
        message: Json,
        reply: Json,
    ) -> bool:
        """Return whether the subscribe goes on when other shards have sent their histories.

        Raises `TurnOver`, or `Refused` if the session may not read them.
        """
        if self._far is None or progress.has_caught_up:
            return False
        catch_up.prepare(is_wanted=not exchange.is_aborted)
        homes = self._far.homes_of(catch_up)
        if not homes:
            return False
        session, fulfil = catch_up.session, begin_pending(self._answers, message, exchange, reply)
        begin_reply(session)

        def go_on(refused: Refused | None, now: float) -> bool:
            exchange.now = now
            try:
                if refused is not None:
                    raise refused
                self._catch_up_far(catch_up, progress, exchange, reading, message=message)
                self._say_caught_up(catch_up, exchange, reply)
            except TurnOver:
                return True
            except Refused as failed:
                failed.fill(reply, self._state.counters.errors)
            except Exception:
                self._state.log.exception("a subscribe could not be carried out")
                Refused(ErrorReply.SERVER_FAULT).fill(reply, self._state.counters.errors)
            reading.end()
            end_reply(session)
            wait = None if "error" in reply else self._succeed(session, reply, progress)
            if wait is None:
                fulfil(now)
            else:
                wait(fulfil)
            return False

        reading = self._far.read(catch_up, homes, partial(self._go_on_soon, go_on))
        return True

    def _go_on_soon(
        self, go_on: Callable[[Refused | None, float], bool], refused: Refused | None
    ) -> None:
        self._state.backlog.add(partial(go_on, refused))

    def _catch_up_far(
        self,
        catch_up: CatchUp,
        progress: _Progress,
        exchange: Exchange,
        reading: "FarReading",
        *,
        message: Json,
    ) -> None:
        """Subscribe with what other shards have sent. Raises as `_catch_up` does."""
        session = catch_up.session
        if session.is_gone or session.has_left:
            raise Refused(ErrorReply.REQUEST_TIMEOUT)
        is_new = not progress.has_caught_up
        try:
            self._catch_up(catch_up, progress, exchange, session=session, message=message)
        finally:
            if is_new and progress.has_caught_up:
                reading.include()

    @staticmethod
    def _say_caught_up(catch_up: CatchUp, exchange: Exchange, reply: Json) -> None:
        answer = catch_up.answer()
        if answer is not None:
            reply["ext"] = {"replay": answer}
        exchange.replies_first = True

    def _prepare(
        self, session: Session, patterns: Mapping[str, Channel], progress: _Progress
    ) -> None:
        """Note what is new to the session, if other shards must know of it."""
        others = self._state.hub.others
        if others is None or not session.is_durable:
            return
        if self._agreed is None:
            # A server alone need not load it.
            from holdfast.bayeux.subscribe.agreeing import AgreedSubscriptions

            self._agreed = AgreedSubscriptions(self._state, others)
        progress.joining = self._agreed.joining(session, [*patterns])

    def _catch_up(
        self,
        catch_up: CatchUp,
        progress: _Progress,
        exchange: Exchange,
        *,
        session: Session,
        message: Json,
    ) -> None:
        """Subscribe, and queue the messages from histories, once they are gathered.

        Raises `TurnOver` if there is no time, also to send many messages in a turn of their own.
        """
        if progress.has_caught_up:
            return
        state = self._state
        catch_up.gather(is_wanted=not exchange.is_aborted)
        state.budgets.spend_answer(session, len(catch_up.messages), exchange.now)
        self._prepare(session, catch_up.patterns, progress)
        state.subscriptions.join(session, catch_up.patterns, message, catch_up.qos)
        catch_up.deliver()
        progress.has_caught_up = True
        if len(catch_up.messages) > _FEW and state.is_turn_over():
            raise TurnOver

    def unsubscribe(self, exchange: Exchange, session: Session, message: Json, reply: Json) -> bool:
        """Remove subscriptions of the session, which must have all of them.

        Other sessions do not affect the reply. Returns whether the reply is complete.
        """
        state = self._state
        channels = self._channels(exchange, message, _progress(exchange))
        if any(channel.kind is Kind.META for channel in channels):
            raise Refused(ErrorReply.UNSUBSCRIBE_FAILED)
        patterns = [channel.name for channel in channels if channel.kind is Kind.BROADCAST]
        if not session.subscriptions.issuperset(patterns):
            raise Refused(ErrorReply.CHANNEL_MISSING)
        for pattern in patterns:
            state.subscriptions.part(session, pattern)
        return self._confirm(exchange, session, message, reply)

    def _patterns(self, session: Session, channels: Sequence[Channel]) -> dict[str, Channel]:
        """Return the channels that have messages. Raises `Refused` for unknown meta channels."""
        for channel in channels:
            if channel.name.startswith(REPLIES):
                self._check_replies(session, channel)
            if channel.kind is Kind.META:
                known = channel.name in _META
                error = ErrorReply.SUBSCRIBE_DENIED if known else ErrorReply.CREATE_DENIED
                raise Refused(error, BY_POLICY)
        # Subscribing to a service succeeds without effect, because services answer their caller
        # anyway.
        return {
            channel.name: channel
            for channel in channels
            if channel.kind is Kind.BROADCAST and not channel.name.startswith(REPLIES)
        }

    def _check_replies(self, session: Session, channel: Channel) -> None:
        """Refuse reply channels, except the session's own, which it receives anyway."""
        if not self._state.requests.is_offered:
            refuse_replies(channel)
        own = reply_channel_of(session)
        if own is None or not channel.name.startswith(own.name + "/"):
            raise Refused(ErrorReply.SUBSCRIBE_DENIED, BY_POLICY)

    def _channels(self, exchange: Exchange, message: Json, progress: _Progress) -> list[Channel]:
        """Return the channels in the message, which is a string or an array of strings."""
        subscription = message.get("subscription")
        if subscription is None:
            raise Refused(ErrorReply.SUBSCRIPTION_MISSING)
        names = subscription if isinstance(subscription, list) else [subscription]
        state, channels = self._state, progress.channels
        if len(names) > state.options.max_subscriptions:
            raise state.subscriptions.too_many()
        for name in islice(names, len(channels), None):
            channel = state.channels.get(name) if isinstance(name, str) else None
            if channel is None:
                raise Refused(ErrorReply.SUBSCRIPTION_INVALID)
            channels.append(channel)
            if len(channels) % _NAMES == 0 and state.is_turn_over():
                exchange.progress = progress
                raise TurnOver
        if not channels:
            raise Refused(ErrorReply.SUBSCRIPTION_INVALID)
        return channels

    def _confirm(
        self,
        exchange: Exchange,
        session: Session,
        message: Json,
        reply: Json,
        *,
        subscribed: _Progress | None = None,
    ) -> bool:
        """Confirm the message. Returns whether the reply is complete."""
        wait = self._succeed(session, reply, subscribed)
        if wait is not None:
            wait(begin_pending(self._answers, message, exchange, reply))
        return wait is None

    def _succeed(
        self, session: Session, reply: Json, subscribed: _Progress | None
    ) -> Callable[[Step], None] | None:
        """Let the reply say so. Returns what fulfils it once that is so, or None if it is.

        Durable subscriptions are stored first, and all other shards know of them. None may leave
        out messages of others.
        """
        reply["successful"] = True
        if session.is_durable:
            joining = None if subscribed is None else subscribed.joining
            return partial(self._confirm_durable, session, reply, joining)
        if subscribed is not None and not self._has_joined:
            return partial(self._confirm_joined, session)
        return None

    def _confirm_durable(
        self,
        session: Session,
        reply: Json,
        joining: "JoiningPatterns | None",
        fulfil: Step,
    ) -> None:
        state = self._state
        state.store.save(ChangedSession(session, state.node))
        go_on = self._paused(session, fulfil)
        if self._agreed is None or joining is None:
            finish_when_kept(state, session, go_on)
        else:
            finish = finish_later(state, session, go_on)
            self._agreed.when_known(joining, reply, finish)

    @property
    def _has_joined(self) -> bool:
        others = self._state.hub.others
        return others is None or others.has_joined

    def _confirm_joined(self, session: Session, fulfil: Step) -> None:
        others, go_on = self._state.hub.others, self._paused(session, fulfil)
        begin_reply(session)

        def joined(now: float) -> None:
            end_reply(session)
            go_on(now)

        if others is not None:
            others.when_joined(partial(self._state.backlog.at_turn_end, joined))

    def _paused(self, session: Session, fulfil: Step) -> Step:
        """Send nothing to the session until its reply. Returns what completes that.

        Messages from histories must not precede the reply.
        """
        session.pauses += 1

        def go_on(now: float) -> None:
            fulfil(now)
            session.pauses -= 1
            self._state.hub.make_ready(session)

        return go_on


def subscribe_qos(session: Session, message: Json) -> tuple[SubscribeQos, Starts | None]:
    """Return the QoS of the subscriptions, and where they start. Raises `Refused`."""
    asked = message["ext"].get("delivery")
    if asked is None:
        return PLAIN, None
    try:
        return SubscribeQos.of(asked, is_kept=session.is_durable), initial_update(asked)
    except QosInvalid as invalid:
        error = ErrorReply.DELIVERY_INVALID
        raise Refused(error, "user.illegalArgument", str(invalid)) from invalid
