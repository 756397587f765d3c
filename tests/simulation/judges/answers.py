"""Judges each answer that a client gets, or misses, against what may have gone wrong then (S11)."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from tests.simulation.judges.excuses import DIVISION, GOING_BACK, HARMLESS, Excuses
from tests.simulation.judges.facts import Facts
from tests.simulation.process import Process
from tests.simulation.session import DISCONNECT, HANDSHAKE, SUBSCRIBE, Attempt
from tests.simulation.talker import Denied, Lost, Message

# Faults that do not even cost a client its connection. Simulated servers without a supervisor
# inherit no connections from those that they replace.
_KEEP_CONNECTIONS = HARMLESS - {"restart"}
# Those that end sessions without a name, if no other server takes the place of one that lives.
KILLS = frozenset(
    (
        *("kill_server", "kill_server_in_call", "crash_server_often", "restart_in_vain"),
        *("cut_off_primary_and_kill_server", DIVISION, GOING_BACK),
        *("restart_and_kill", "lose_machine"),
        "cut_power",
    )
)
# Servers that stop in order give such sessions to the next ones, if they have their store. They do
# so without their supervisor, too.
_STOPS = frozenset(("stop_supervisor", "kill_supervisor", "terminate_server"))
_WITHOUT_STORE = frozenset(
    (
        *("freeze_store", "end_store", "crash_store_soon", "fill_store", "fill_disk"),
        *("part_from_store", "lose_connection", "lose_direction", "hold_connection"),
    )
)
# Errors that say what a client did, which others judge, by their texts.
_OF_CLIENTS = frozenset(
    (
        "topic_readonly",
        "channel_missing",
        "reply_denied",
        "late_reply",
        "duplicate_reply",
        "request_timeout",
        "no_responders",
        "message_deleted",
        "user.oid.unknown",
    )
)
# What strangers are told whose token nobody has; and, behind so many tries within so long, in place
# of it: one of three shards lets no more pass at once.
_WRONG_TOKEN = "handshake_denied"
_TOO_OFTEN = "503::server_busy"
_TRIES, _TRIES_S = 4, 60.0
# What a service says instead of 503.
_AWAY = ("resource.cluster.notAvailable", "communication.noConnection")
# What a subscribe is told if not all shards know of it, and what must not lead to that.
_NOT_ALL = "resource.cluster.notAvailable"
_FREEZES = frozenset(("freeze_server", "freeze_server_for_long"))
# How long a server may take until it has handled what waited while it was frozen.
_THAWS_S = 2.0
# What who shows a token is told if it is no good, and what makes good ones bad.
_OF_LOGINS = frozenset(("handshake_denied", "login_denied"))
_OF_CLOCKS = frozenset(("set_clock",))
# How far wall clocks may be from the true time, if several faults set them.
_MOST_SET_S = 20_000.0
_STARTS = frozenset(("the start",))
_SUPERSEDED = "connect_superseded"
_LOST = "lost: "
_NOT_THERE = f"{_LOST}ConnectionRefusedError"
# In place of an error, if a message was accepted although an error was due.
_TAKEN = "successful"
# Limits of how many there are, of which some may have ended, and how soon a client hears of that.
_OF_NUMBERS = frozenset(("requests_exceeded",))
_HEARS_S = 10.0
# A server ends what is over by its wall clock when it starts.
_KEEP_NUMBERS = HARMLESS - {"set_clock"}
_CODE = re.compile(rf"(?:{_LOST}status )?(\d+)")
# After so long without contact a session may be over: the servers' limit, by a clock that is fast.
_SILENT_S = 10.0 / 1.1 - 0.5
# How much longer true time may be than by the clock of a client.
_SLOWEST = 1 / 0.9
# For so long before it was killed a server may not have stored a session.
_STORED_S = 1.0


class _Failure(NamedTuple):
    """An attempt that had no success."""

    attempt: Attempt
    at: float
    said: str
    # Whether it came from a server that waits for another one to end.
    is_of_standby: bool
    # Whether the session's own server took the request, and had not been frozen lately.
    has_run: bool = False
    # How long before that the connection had ended, which its client had kept.
    ended_before_s: float = 0.0

    @property
    def code(self) -> str:
        """The status or the code of the error; the empty text if there was no answer."""
        found = _CODE.match(self.said)
        if found is None:
            return "503" if self.said in _AWAY else ""
        return found[1]


@dataclass(slots=True)
class _Life:
    """A session, by its client id: of whom, since when, at which server, and its last contact."""

    name: str
    since: float
    server: Process | None
    heard_at: float
    ended_at: float = inf
    # When its login ends, and since when the server knows that.
    login_ends_at: float = inf
    logged_in_at: float = 0.0
    # When its client first said that a message could not be used, after which it may get none.
    refused_at: float = inf


class Answers:
    """Collects what clients ask, and what they are told."""

    def __init__(self, facts: Facts) -> None:
        self.now = facts.now
        self._home_of = facts.home_of
        self._stands_by = facts.stands_by
        # Whether no other server takes the place of one that lives.
        self.has_shards = False
        # Whether another machine goes on with the shards of one that does not run.
        self.has_hosts = False
        # Whether an operator may have ended the session of a name between these times.
        self.was_ended: Callable[[str, float, float], bool] = lambda *_: False
        self._lives: dict[str, _Life] = {}
        # When clients asked for a session with a name.
        self._claims: dict[str, list[float]] = defaultdict(list)
        self._failures: list[_Failure] = []
        # How often clients asked for anything, and how many answers were as they should be.
        self.attempts = 0
        self._successes = 0

    def begins(self, attempt: Attempt) -> None:
        """Note that a client is about to ask for something."""
        self.attempts += not attempt.channel.startswith("/meta/")
        if attempt.channel == HANDSHAKE and attempt.name and not attempt.due:
            self._claims[attempt.name].append(attempt.asked_at)
        life = self._lives.get(attempt.client_id)
        if life is not None and attempt.channel == DISCONNECT:
            life.ended_at = attempt.asked_at
        if life is not None and attempt.refuses:
            life.refused_at = min(life.refused_at, attempt.asked_at)

    def answered(self, attempt: Attempt, reply: Message) -> None:
        """Note that it was done."""
        self._successes += 1
        now = self.now()
        if attempt.due:
            self._failures.append(_Failure(attempt, now, _TAKEN, is_of_standby=False))
        if attempt.channel == HANDSHAKE:
            id = reply["clientId"]
            self._lives[id] = _Life(attempt.name, now, self._home_of(id), now)
        elif attempt.client_id in self._lives:
            self._lives[attempt.client_id].heard_at = now
        life = self._lives.get(reply.get("clientId", attempt.client_id))
        if life is not None and attempt.login_ends_at < inf:
            life.login_ends_at, life.logged_in_at = attempt.login_ends_at, now

    def failed(self, attempt: Attempt, fault: Lost | Denied) -> None:
        """Note that it was refused, or that there was no answer."""
        said = f"{_LOST}{fault}" if isinstance(fault, Lost) else str(fault)
        is_of_standby, has_run = self._stands_by(attempt.door), self._has_run(attempt)
        ended_before_s = fault.ended_before_s if isinstance(fault, Lost) else 0.0
        self._failures.append(
            _Failure(attempt, self.now(), said, is_of_standby, has_run, ended_before_s)
        )

    def _has_run(self, attempt: Attempt) -> bool:
        life = self._lives.get(attempt.client_id)
        own = None if life is None else life.server
        if own is None or own.host != attempt.door:
            return False
        return own.thawed_at < attempt.asked_at - _THAWS_S

    # What it means

    def violations(self, excuses: Excuses) -> list[str]:
        """Return the answers that nothing excuses."""
        return [*self._wrong(excuses)]

    def _wrong(self, excuses: Excuses) -> Iterator[str]:
        excuses.judges("answer", self._successes)
        for failure in self._failures:
            excuses.judges("answer")
            if failure.attempt.due:
                excuses.judges(f"limit {failure.attempt.due}")
            if not self._may_be(failure, excuses):
                attempt = failure.attempt
                who = attempt.name or attempt.client_id or "somebody"
                yield (
                    f"S11: {who} was told {failure.said!r} at {failure.at:.3f} for "
                    f"{attempt.channel}, asked at {attempt.asked_at:.3f}"
                )

    def _may_be(self, failure: _Failure, excuses: Excuses) -> bool:
        attempt, code, text = failure.attempt, failure.code, failure.said.rpartition(":")[2]
        if text in _OF_CLIENTS or (text and text == attempt.due) or self._has_tried(failure):
            return True
        if failure.said == _TAKEN and attempt.due in _OF_NUMBERS:
            # What counts may have ended with a server, and its client hears of it later.
            since = attempt.asked_at - _HEARS_S
            return excuses.excuse("limit", since, failure.at, harmless=_KEEP_NUMBERS)
        if text in _OF_LOGINS and attempt.login_ends_at < inf:
            return self._may_be_no_login(failure, excuses)
        if self._is_of_one_frozen_shard(failure, excuses):
            return False
        if code in ("401", "402"):
            return self._may_be_unknown(failure, excuses)
        if failure.is_of_standby and (code == "503" or failure.said == _NOT_THERE):
            # It refuses everything, or does not run just then.
            excuses.count(f"answer {code or 'lost'}", "a standby")
            return True
        if code == "503":
            # A login that is refused takes its time, and a server that leaves does not wait for it.
            is_slow = attempt.channel == HANDSHAKE and attempt.due
            harmless = () if is_slow else HARMLESS
            return _is_of_trouble("answer 503", failure, excuses, harmless=harmless)
        if text == _SUPERSEDED:
            # Its client has given it up, and asked once more.
            return _is_of_trouble("answer 409", failure, excuses, harmless=HARMLESS)
        if failure.said.startswith(_LOST) and not code:
            return _is_of_trouble("answer lost", failure, excuses, harmless=_KEEP_CONNECTIONS)
        return False

    def _has_tried(self, failure: _Failure) -> bool:
        """Return whether a stranger has to wait because so many wrong tokens were shown before."""
        if failure.attempt.due != _WRONG_TOKEN or failure.said != _TOO_OFTEN:
            return False
        tries = [
            each
            for each in self._failures
            if failure.at - _TRIES_S <= each.at < failure.at and each.said.endswith(_WRONG_TOKEN)
        ]
        return len(tries) >= _TRIES

    def _may_be_no_login(self, failure: _Failure, excuses: Excuses) -> bool:
        """Return whether the token that was shown may have ended before it was looked at."""
        attempt, what = failure.attempt, "answer 403"
        if attempt.login_ends_at < failure.at:
            excuses.count(what, "its token has ended")
            return True
        return excuses.excuse(what, attempt.asked_at, failure.at, only=_OF_CLOCKS)

    def _is_of_one_frozen_shard(self, failure: _Failure, excuses: Excuses) -> bool:
        """Return whether a subscribe was refused because another shard was frozen.

        That one must have been left out.
        """
        since, until = failure.attempt.asked_at, failure.at
        is_refused = failure.attempt.channel == SUBSCRIBE and _NOT_ALL in failure.said
        if not (is_refused and failure.has_run):
            return False
        if excuses.in_force(since, until, harmless=HARMLESS | _FREEZES) is not None:
            return False
        # Otherwise one of them may have gone on for a moment. Long ones seldom end.
        return excuses.number_of("freeze_server", since, until) <= 1

    def _may_be_unknown(self, failure: _Failure, excuses: Excuses) -> bool:
        """Return whether the server may not have known a token of operators, or a session."""
        if failure.code == "402":
            return self._may_be_over(failure, excuses)
        # Hosts that start together agree on tokens then.
        since, until = failure.attempt.asked_at, failure.at
        return self.has_hosts and excuses.excuse("answer 401", since, until, only=_STARTS)

    def _may_be_over(self, failure: _Failure, excuses: Excuses) -> bool:
        """Return whether the session may have ended before it was refused so."""
        attempt = failure.attempt
        life = self._lives.get(attempt.client_id)
        if life is None:
            return False
        what = "answer 402"
        if any(life.since < claim < failure.at for claim in self._claims[life.name]):
            excuses.count(what, "another client has its name")
        elif life.ended_at < failure.at:
            excuses.count(what, "its client has ended it")
        elif self.was_ended(life.name, life.since, failure.at):
            excuses.count(what, "an operator has ended it")
        elif attempt.asked_at - life.heard_at > _SILENT_S:
            excuses.count(what, "its client was silent")
        elif not life.name and life.refused_at < failure.at:
            excuses.count(what, "its client has refused a message")
        elif _has_logged_out(what, life, failure, excuses):
            return True
        elif life.name:
            # It is stored, and so is its login.
            return any(
                excuses.excuse(what, at, at + _STORED_S, harmless=HARMLESS)
                for at in (life.since, life.logged_in_at)
            )
        elif excuses.met(_STOPS, _WITHOUT_STORE, life.since, failure.at):
            excuses.count(what, "a server that stopped without its store")
        else:
            ends = KILLS if self.has_shards and not self.has_hosts else None
            return excuses.excuse(what, life.since, failure.at, harmless=HARMLESS, only=ends)
        return True


def _has_logged_out(what: str, life: _Life, failure: _Failure, excuses: Excuses) -> bool:
    """Return whether the session's login has ended by the clock of its server, and that counts."""
    if life.login_ends_at < failure.at:
        excuses.count(what, "its login has ended")
        return True
    ends_soon = life.login_ends_at < failure.at + _MOST_SET_S
    return ends_soon and excuses.excuse(what, life.since, failure.at, only=_OF_CLOCKS)


def _is_of_trouble(
    what: str, failure: _Failure, excuses: Excuses, *, harmless: Collection[str]
) -> bool:
    since = failure.attempt.asked_at - _SLOWEST * failure.ended_before_s
    return excuses.excuse(what, since, failure.at, harmless=harmless)
