"""Each server that is broken on purpose can be broken in its way."""

import pytest

from tests.simulation.broken import ALL_BUILDS, damaged

# Other functions take the place of some, which compiled code does not let in.
pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("build", ALL_BUILDS)
def test_what_a_broken_server_replaces_is_there(build: str) -> None:
    """Most builds are played by hand only."""
    with damaged(build):
        pass
