"""Servers that are broken on purpose: seeds must find each of them."""

import pytest

from tests.simulation.broken import BUILDS
from tests.simulation.run import simulate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("build", BUILDS)
def test_a_seed_finds_each_broken_server(build: str) -> None:
    code, said = simulate("--broken", build, "--seeds", "1-120")
    assert code == 1, said
