"""Real servers keep their promises in simulated worlds, whatever the seed."""

import pytest

from tests.simulation.run import simulate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_no_seed_breaks_a_promise() -> None:
    code, said = simulate("--seeds", "1-24")
    assert code == 0, said


@pytest.mark.timeout(360)
@pytest.mark.parametrize("store", ["pair", "cluster"])
def test_no_failover_of_the_store_breaks_a_promise(store: str) -> None:
    code, said = simulate("--seeds", "1-5", "--store", store)
    assert code == 0, said


def test_a_seed_decides_the_same_in_each_run() -> None:
    def trace(seed: str) -> list[str]:
        _, said = simulate("--seed", seed, "--trace")
        # The last line says how long it took.
        return said.splitlines()[:-1]

    first = trace("7")
    assert len(first) > 1000
    assert first == trace("7")
