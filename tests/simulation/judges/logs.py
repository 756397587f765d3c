"""Judges what servers log: no traceback, nothing critical, and no error without its cause."""

import logging
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Final, NamedTuple

from tests.simulation.environment import running_process
from tests.simulation.judges.excuses import DIVISION, LOSE_TAILS, Excuses
from tests.simulation.process import Process

# Faults by which the file of a store lacks its end.
_CUT_POWER: Final = frozenset(("cut_power", "cut_power_of_store"))
# Faults that keep a server from its store, or both from answering in time.
_APART: Final = _CUT_POWER | frozenset(
    (
        *("freeze_store", "end_store", "crash_store_soon", "part_from_store", "hold_reading"),
        *("cut_connection", "lose_connection", "lose_direction", "hold_connection"),
        *("slow_network", "slow_server", "move_slot", "lose_machine"),
        *("freeze_server", "freeze_server_in_call", "freeze_server_for_long"),
        *("suspend_server", "suspend_server_in_raise", "restart_and_freeze"),
        *("freeze_host", "slow_host", "drain_host_and_freeze"),
    )
)
# Those of them that do not keep a server from raising its lease for long.
_BRIEF: Final = frozenset(
    ("cut_connection", "slow_server", "move_slot", "hold_reading", "lose_machine")
)
# Those through which a store loses changes, or its replicas; and those that leave it no room.
_LOSE: Final = LOSE_TAILS | {"cut_off_replica", "slow_replica", "move_slot"}
_FILL: Final = frozenset(("fill_store", "fill_disk", "fill_disk_and_cut_off_server_with_primary"))
# Those by which another server takes the store over, or a server goes on with an older store.
_TAKE_OVER: Final = (_APART - _BRIEF) | LOSE_TAILS | {"kill_supervisor", "restart_that_hangs"}
# Those by which a supervisor, or a server that it asks for something, ends or waits in vain.
_ABANDON: Final = _APART | frozenset(
    (
        *("kill_supervisor", "stop_supervisor", "freeze_supervisor", "kill_importer"),
        *("freeze_importer", "restart_and_kill", "restart_in_vain", "restart_that_hangs"),
        *("drain_host_and_kill", "update_host", "kill_claimer", "freeze_claimer"),
    )
)
# Those by which a server stands still.
_FREEZES: Final = frozenset(
    (
        *("freeze_server", "freeze_server_in_call", "freeze_server_for_long", "suspend_server"),
        *("freeze_host", "drain_host_and_freeze"),
    )
)
# Which faults excuse which errors, by how these or their forms begin. Nothing excuses others, a
# traceback or a critical record, but that the time of a login was over.
_EXCUSED_BY: Final[Mapping[str, AbstractSet[str]]] = {
    "the store is unavailable": _APART | _LOSE | _FILL | _ABANDON,
    "too few replicas confirm messages": _APART | _LOSE | _FILL,
    "the store accepts no messages": _FILL,
    "the store has lost changes": LOSE_TAILS | _CUT_POWER | {"lose_machine"},
    "another process has taken the store over": _TAKE_OVER,
    "the store has an epoch that this server does not know": _TAKE_OVER,
    "the store is unavailable and the journal's buffer is full": _APART | _LOSE,
    "the store refuses journal frames": _FILL | _LOSE,
    "lost ": _APART | _LOSE | _FILL,
    "the embedded store": _CUT_POWER | {"end_store", "crash_store_soon", "lose_machine"},
    "the supervisor has ended": _ABANDON,
    "the server can neither leave nor go on": _ABANDON | LOSE_TAILS | _FILL,
    "the store was lost while a shard was given away": _APART | _LOSE | _CUT_POWER,
    "another server, ": _TAKE_OVER | _ABANDON,
    "%s of shard %d did not arrive: its log has them no more": LOSE_TAILS,
    "the log of shard %d has lost its end": LOSE_TAILS | _CUT_POWER,
    "the store cannot be opened": _LOSE | _FILL,
    "a link of another process is refused: it belongs to another deployment": {DIVISION},
    "the link to shard": {DIVISION},
    # Logins that stand still with their server are over their time.
    "a handshake could not be handled": _FREEZES,
}


class Complaint(NamedTuple):
    """A record that no server should log if nothing goes wrong."""

    at: float
    server: str
    said: str
    error: str
    # The same for all records of this kind.
    form: str
    # Whether a fault may excuse it.
    is_excusable: bool


class Complaints(logging.Handler):
    """Collects what the servers of a world should never log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[Complaint] = []
        # How many records servers have logged that are not only for information.
        self._records = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record if it is of a server, and has a traceback or is an error."""
        process = running_process()
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(process, Process):
            return
        self._records += 1
        if not error and record.levelno < logging.ERROR:
            return
        said = record.getMessage().partition("\n")[0]
        is_excusable = not error and record.levelno < logging.CRITICAL
        self.found.append(
            Complaint(
                process.world.now, process.name, said, repr(error), str(record.msg), is_excusable
            )
        )

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Listen to everything that is logged meanwhile."""
        root = logging.getLogger()
        root.addHandler(self)
        try:
            yield
        finally:
            root.removeHandler(self)

    def violations(self, excuses: Excuses) -> list[str]:
        """Return what no fault excuses."""
        excuses.judges("error in a log", self._records)
        return [
            f"log: {each.server} said at {each.at:.3f}: {each.said} ({each.error})"
            for each in self.found
            if not _is_excused(each, excuses)
        ]


def _is_excused(complaint: Complaint, excuses: Excuses) -> bool:
    if not complaint.is_excusable:
        return False
    at = complaint.at
    return any(
        any(text.startswith(said) for text in (complaint.said, complaint.form))
        and excuses.excuse(f"error {said.strip()}", at, at, only=faults)
        for said, faults in _EXCUSED_BY.items()
    )
