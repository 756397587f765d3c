"""Real servers keep their promises in simulated worlds, whatever the seed."""

import pytest

from tests.effort import TIMES
from tests.simulation.modes import MODES, Mode, first_seed
from tests.simulation.run import simulate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.timeout(900 * TIMES)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.words or "one server")
def test_no_seed_breaks_a_promise(mode: Mode) -> None:
    """The seeds are others for each commit; what is printed says which."""
    first = first_seed()
    words = (*mode.words.split(), "--seeds", f"{first}-{first + mode.seeds * TIMES - 1}")
    code, said = simulate(*words)
    assert code == 0, f"python -m tests.simulation {' '.join(words)}\n{said}"


def test_a_few_seeds_reach_what_matters_to_shards() -> None:
    words = ("--groups", "works,erases", "--faults", "kill_server", "--seeds", "11-12", "--marks")
    code, said = simulate("--shards", *words)
    assert code == 0, said
    reached = {line[8:] for line in said.splitlines() if line[:6].strip().isdigit()}
    # What a few seeds reach, whatever they are. A long run must reach everything.
    assert reached >= {"script take", "script append_facts", "fault kill_server"}, said
    assert reached >= {"another shard has done work", "another shard has erased a topic"}, said


def test_no_fault_of_a_supervisor_breaks_a_promise() -> None:
    faults = "ask_for_restart,restart_and_kill,kill_supervisor,kill_importer,kill_server"
    words = ("--supervisor", "--shards", "--seeds", "2-3", "--faults", faults, "--marks")
    code, said = simulate(*words)
    assert code == 0, said
    reached = {line[8:] for line in said.splitlines() if line[:6].strip().isdigit()}
    assert reached >= {"a supervisor has replaced its servers", "a supervisor ended"}, said


def test_shards_move_between_hosts_without_a_broken_promise() -> None:
    faults = "lose_machine,freeze_host,drain_host"
    code, said = simulate("--hosts", "--seeds", "3", "--faults", faults, "--marks")
    assert code == 0, said
    assert "a shard has moved to another host" in said, said


@pytest.mark.parametrize("more", [(), ("--supervisor",)])
def test_a_seed_decides_the_same_in_each_run_whatever_ran_before(more: tuple[str, ...]) -> None:
    def digests(seeds: str) -> list[str]:
        _, said = simulate("--seeds", seeds, "--shards", "--digests", *more)
        # The last line says how long it took.
        return said.splitlines()[:-1]

    # All servers are replaced in the last one.
    found = digests("17-18")
    assert len(found) == 2
    assert found[-1:] == digests("18")


def test_the_trace_of_a_seed_says_what_happened() -> None:
    _, said = simulate("--seed", "7", "--trace")
    assert len(said.splitlines()) > 1000
