"""Runs administrative commands."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from holdfast.bayeux.commands.grammar import Command
from holdfast.bayeux.commands.rest_calls import Level
from holdfast.bayeux.sessions import interventions
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.status import find, hold_of
from holdfast.bayeux.wire.command_refused import ILLEGAL, CommandRefused
from holdfast.delivery.topics.states import TopicState


@dataclass(frozen=True, slots=True)
class CommandReply:
    """The reply to a command."""

    # The absolute form, without the value.
    command: str
    # The value as text; several values are separated by line ends.
    value: str
    # For a set value: OK, and the absolute command with its value.
    state: Literal["OK"] | None = None
    info: str | None = None


class Commands:
    """Runs commands on the sessions, subjects and topics of this server.

    Args:
        clock: Returns monotonic seconds, as the server counts them.
    """

    def __init__(self, life: SessionLife, clock: Callable[[], float]) -> None:
        self._life = life
        self._state = life.state
        self._clock = clock

    def run(self, command: Command, who: str) -> CommandReply:
        """Run a command of this operator. Raises `CommandRefused` before any change.

        The caller must write commands that change something to the audit.
        """
        node = self._state.node.name
        if command.node not in (None, node):
            raise CommandRefused(ILLEGAL, f"this node is named {node}")
        match command.level:
            case Level.SUBJECT:
                value = self._of_subject(command, who)
            case Level.SESSION:
                value = self._of_session(command, who)
            case _:
                value = self._of_topic(command)
        if value is None:
            raise CommandRefused(ILLEGAL, f"no {command.level.value} has this name")
        name = command.absolute(node)
        if command.value is None:
            return CommandReply(name, value)
        return CommandReply(name, value, "OK", f"{name}={value}")

    def _of_subject(self, command: Command, who: str) -> str | None:
        sessions = self._state.sessions.of_subject(command.target)
        receiver = self._state.subjects.queue(command.target)
        is_known = sessions or receiver is not None
        if command.name == "subjectQueueNumMsgs" and (is_known or self._is_home_of(command.target)):
            return str(0 if receiver is None else receiver.queue.count)
        if not is_known:
            return None
        if command.name == "sessions":
            return "\n".join(sorted(session.key for session in sessions))
        interventions.end_all(self._life, sessions, who, self._clock())
        return ""

    def _is_home_of(self, subject: str) -> bool:
        """Whether no other shard would have the subject."""
        homes = self._state.homes
        return homes is None or homes.home_of_subject(subject) is None

    def _of_session(self, command: Command, who: str) -> str | None:
        session, now = find(self._state.sessions, command.target), self._clock()
        if session is None:
            return None
        match command.name:
            case "cbQueueNumMsgs":
                return str(session.queue.count)
            case "connectionState":
                return session.connection_state.value
            case "killSession":
                interventions.end(self._life, session, who, now)
                return ""
            case _:
                if command.value:
                    self._life.resume(session, now, who=who)
                elif command.value is not None and hold_of(session) is None:
                    self._life.hold_back(session, "dispatcherActive=false", who=who, now=now)
                return "true" if hold_of(session) is None else "false"

    def _of_topic(self, command: Command) -> str | None:
        topic = self._state.topics.get(command.target)
        return None if topic is None or topic.state is TopicState.DEAD else topic.state.value
