"""Who waits until a server is ready may have it restarted at once."""

import os
import signal
import time
from pathlib import Path

from tests.clients.deployment import Deployment, deployed

LIMIT_S = 60.0


def test_a_server_that_says_it_is_ready_may_be_restarted(tmp_path: Path) -> None:
    with deployed(tmp_path, {}) as deployment:
        os.kill(deployment.pid, signal.SIGHUP)
        assert "the restart is done" in end_of_restart(deployment)


def end_of_restart(deployment: Deployment) -> str:
    """What the supervisor logs about the end of a restart."""
    ends_at = time.monotonic() + LIMIT_S
    while time.monotonic() < ends_at:
        for line in deployment.log().splitlines():
            if "the restart is done" in line or "the restart has failed" in line:
                return line
        time.sleep(0.02)
    return deployment.log()
