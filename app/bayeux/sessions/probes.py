"""Probes of held channels: when, with which message, and on which receiver."""

from collections.abc import Iterator
from itertools import chain, islice

from holdfast.bayeux.session import Session
from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.guard.holds import Guard
from holdfast.delivery.guard.probe import Probe
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.hub import Hub

# Searches start at evenly spread positions: receivers that refuse everything may have subscribed
# one after another.
_SPREAD = 0.618033988749895
# Per tick: channels to probe, receivers to look at on each, messages in each queue, and messages in
# all queues.
_TRIES = 10
_LOOKS = 200
_DEPTH = 500
_MESSAGES = 5000


class Probes:
    """Finds the message and the receiver that may show that a channel works again."""

    def __init__(self, guard: Guard, hub: Hub[Session], channels: Channels) -> None:
        self._guard = guard
        self._hub = hub
        self._channels = channels

    def tick(self, now: float) -> None:
        """Probe the channels that are due."""
        probes = self._guard.probes
        if not probes:
            return
        due = [(name, each) for name, each in probes.items() if each.due <= now]
        for name, probe in due[:_TRIES]:
            if probe.is_under_way or not self._try(name, probe, now):
                probe.give_up(now)

    def _try(self, name: str, probe: Probe, now: float) -> bool:
        """Start a probe. Returns False if no receiver was found."""
        found = self._find(name, probe, now)
        probe.searches += 1
        if found is None:
            return False
        session, message = found
        probe.begin(session, message, now)
        # A late verdict counts too.
        self._guard.watch(now)
        self._hub.flow_again(session)
        return True

    def _find(self, name: str, probe: Probe, now: float) -> tuple[Session, Message] | None:
        """Return a receiver and a message, preferably of a publisher without a refusal."""
        second_best, room = None, _MESSAGES
        for session in self._candidates(name, probe.searches, now):
            for message in islice(_waiting(session), min(room, _DEPTH)):
                room -= 1
                if message.channel == name:
                    if probe.may_pass(message.sender):
                        return session, message
                    second_best = second_best or (session, message)
            if room <= 0:
                break
        return second_best

    def _candidates(self, name: str, searches: int, now: float) -> Iterator[Session]:
        """Yield the receivers that can get a message of the channel now."""
        channel = self._channels.get(name)
        receivers = () if channel is None else self._hub.routes.receivers(channel)
        first = int(searches * _SPREAD % 1.0 * len(receivers))
        for place in range(first, first + min(len(receivers), _LOOKS)):
            session = receivers[place % len(receivers)]
            if session.can_refuse and not session.has_left and session.flows(now):
                yield session


def _waiting(session: Session) -> Iterator[Message]:
    """Yield the session's waiting messages, in order."""
    queue = session.queue
    return chain((entry.message for entry in queue.returned.values()), queue.new)
