"""What tests of the doors share."""

from collections.abc import Iterator
from math import inf

import pytest
from blockbuster import blockbuster_ctx


@pytest.fixture(scope="module")
def nothing_blocks() -> Iterator[None]:
    """Whatever keeps the event loop waiting for the system is an error."""
    with blockbuster_ctx() as watch:
        for call in watch.functions.values():
            # A server that is being made reads its pages.
            call.can_block_in("holdfast/web/pages.py", "add_pages")
        yield


@pytest.fixture(scope="session", autouse=True)
def machine_is_never_too_slow() -> Iterator[None]:
    """However slow the machine is, handshakes are admitted and no request overruns its turn.

    After an overrun, large requests would wait for real time, of which `Rig` lets none pass.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast.web.ticker._CONGESTED_S", inf)
        patch.setattr("holdfast.web.request_scheduler.thread_time", lambda: 0.0)
        yield
