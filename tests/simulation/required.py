"""What a long run must reach, or it has not tried everything."""

from collections.abc import Iterator

from tests.simulation.faults import restart_in_vain
from tests.simulation.play import IN_FORMER_LAYOUT, Setting
from tests.simulation.schedule import possible
from tests.simulation.small import REACHED, mark_of
from tests.simulation.store_faults import cut_power_of_store
from tests.simulation.store_site import Kind

# Scripts that change something, and whose repeats do nothing.
_SCRIPTS = ("keep", "keep_keyed", "settle", "save", "mark_batches")
_SCRIPTS_OF_SHARDS = ("append", "append_facts", "take", "follow", "trim_log")


def required(setting: Setting) -> Iterator[str]:
    """Yield the marks."""
    faults = possible(
        setting.kind,
        has_shards=setting.has_shards,
        divides=setting.divides,
        is_supervised=setting.is_supervised,
        has_hosts=setting.has_hosts,
    )
    yield from (f"fault {fault.__name__}" for fault in faults)
    for script in _SCRIPTS + (_SCRIPTS_OF_SHARDS if setting.has_shards else ()):
        yield f"script {script}"
        yield f"repeated {script}"
    yield from _OF_ALL + _OF_OPERATORS + _OF_LOGINS + _OF_BATCHES
    if not setting.divides:
        yield from (IN_FORMER_LAYOUT, "an upgrade was finished")
    if not (setting.has_shards or setting.is_supervised):
        yield from ("an earlier release came back", "an earlier release was refused")
    if setting.kind is Kind.EMBEDDED:
        yield from ("an embedded store was started", "an embedded store was adopted")
    else:
        yield from ("a server fell silent", "a server spoke again")
        if not setting.has_shards:
            yield "a server was fenced off"
    if setting.kind not in (Kind.SINGLE, Kind.EMBEDDED) or cut_power_of_store in faults:
        yield "a store went back"
    if setting.is_supervised:
        yield from _OF_SUPERVISORS
    elif restart_in_vain in faults:
        yield from _OF_RESTARTS
    if setting.has_shards:
        yield from _OF_HOSTS if setting.has_hosts else ()
        yield from _OF_SHARDS
        yield from (mark_of(*each) for each in REACHED)


_OF_ALL = (
    "a refused message came again",
    "a refusal has left a letter",
    "a full queue has left a letter",
    "a lifetime has ended",
)
_OF_OPERATORS = (
    "a letter was replayed",
    "a hold has no limit",
    "an operator has ended a session",
)
_OF_LOGINS = (
    "a login was renewed",
    "a client was told that its login ends",
    "refused handshake_denied",
    "refused login_denied",
    "refused publish_denied",
    "refused cookie_missing",
    "refused session_name_denied",
    "refused session_unknown",
    "refused subscribe_denied",
)
_OF_BATCHES = (
    "a request was refused in part",
    "what was behind a refused message came again",
)
_OF_RESTARTS = ("all servers were succeeded", "a restart failed", "a server was taken back")
_OF_SUPERVISORS = (
    "a supervisor has welcomed its operator",
    "a supervisor has replaced its servers",
    "a restart of a supervisor failed",
    "a supervisor ended",
)
_OF_HOSTS = (
    "a host has claimed a shard",
    "a shard was offered to another host",
    "a shard has moved to another host",
    "a host without a shard has a door",
    "a host was drained and updated",
)
_OF_SHARDS = (
    "told before what an opening reads",
    "told behind what an opening reads",
    "a store had no memory",
    "a store had no disk",
    "a request was given up with its link",
    "another shard has done work",
    "another shard had work before its home started",
    "another shard gave work back",
    "another shard has lost work",
    "another shard had work for too long",
    "a home has erased a topic",
    "another shard has erased a topic",
    "a home has asked whether a topic may end",
    "a publish has waited until all knew a topic",
    "a socket has got a session of another shard",
    "events went to a socket at another shard",
    "another shard has lost a socket",
    "a socket was closed when another shard was lost",
    "a connection was given to another shard",
    "a connection was taken back",
    "a socket was given to another shard",
    "a shard has left out a channel",
    "a shard has left out a channel no more",
)
