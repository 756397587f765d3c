"""How the supervisor becomes a new program: under its pid, with its descriptors and children."""

import json
from collections.abc import Sequence

from holdfast.supervisor.control import STATE_VERSION, Say
from holdfast.supervisor.log import log
from holdfast.supervisor.places import Place
from holdfast.supervisor.processes import FORMER, Process
from holdfast.supervisor.running import Supervisor


def become_new(supervisor: Supervisor) -> None:
    """Run the code that is on the disk now; returns if that is impossible."""
    # From here on, a signal waits until the new program is ready for it.
    with supervisor.system.signals_held():
        try:
            supervisor.obey()
            if not supervisor.is_stopping:
                _run_new_code(supervisor)
        except OSError as error:
            log("error", f"the supervisor goes on with its old code: {error}")


def _run_new_code(supervisor: Supervisor) -> None:
    importer, places = supervisor.importer, supervisor.places
    servers = [each.living for each in places if each.living is not None]
    if importer is None or importer.code is not None or len(servers) < len(places):
        raise OSError("a process has just ended")
    if importer.told.get("state") != STATE_VERSION:
        raise OSError("the new code cannot go on with this state")
    former = [each for each in supervisor.processes if each.importer and each not in servers]
    processes = [(each.channel.fileno(), each.pid) for each in (importer, *servers, *former)]
    left = {
        "processes": processes,
        "kept": [each.kept for each in places],
        "numbers": [each.number for each in places],
        "shards": supervisor.shards,
        **supervisor.limits,
        "links": supervisor.links,
        "has_served": supervisor.has_served,
        # Earlier programs have no servers that wait.
        "waiting": [each.is_waiting for each in places],
        # By a signal during the restart that ends with this.
        "asked": supervisor.request is not None,
    }
    descriptors = (*(number for number, _ in processes), *_kept_of(places))
    supervisor.system.become(supervisor.words, left, descriptors)


def _kept_of(places: Sequence[Place]) -> list[int]:
    return [each for place in places for each in place.kept.values()]


def resume(supervisor: Supervisor, text: str) -> None:
    """Go on where the program before this one has left off."""
    left, system = json.loads(text), supervisor.system
    supervisor.has_served, supervisor.has_started = left.get("has_served", True), True
    supervisor.take_limits(left)
    supervisor.links = left["links"]
    if left.get("asked"):
        supervisor.ask_by_signal()
    supervisor.shards = left.get("shards", 0)
    # Earlier programs have a place for each shard.
    numbers = left.get("numbers", range(len(left["kept"])))
    supervisor.places = [
        Place(number, kept, system, {} if supervisor.shards and number else None)
        for number, kept in zip(numbers, left["kept"], strict=True)
    ]
    for each in _kept_of(supervisor.places):
        system.keep_to_itself(each)
    supervisor.take_commands()
    importer, *servers = ((system.channel(each), pid) for each, pid in left["processes"])
    supervisor.importer = supervisor.add(Process(system, *importer))
    for handle in servers:
        server = supervisor.add(Process(system, *handle, supervisor.importer))
        server.title = FORMER
        # Clients wait for it until it says that it is alive.
        server.hurry()
    waiting = left.get("waiting", ())
    pairs = zip(supervisor.places, supervisor.processes[1:], strict=False)
    for index, (place, server) in enumerate(pairs):
        place.server, server.title = server, "the server"
        server.shard = supervisor.shard_text(place)
        is_waiting = index < len(waiting) and waiting[index]
        server.told = {"say": Say.WAITING if is_waiting else Say.READY}
