"""Workers whose store has a replica: a publish is accepted when that has the message."""

from pathlib import Path

import pytest

from bench.processes import reserved_port
from tests.store.servers import ValkeyServer
from tests.web.sharding.fleet import AT_SECOND, Visitor, fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]  # starts several processes

ALWAYS = {"appendonly": "yes", "appendfsync": "always"}


async def test_publishes_are_accepted_whichever_worker_has_their_receivers(
    tmp_path: Path,
) -> None:
    with (
        reserved_port() as port,
        ValkeyServer(port=str(port), **{"repl-diskless-sync-delay": "0", **ALWAYS}) as primary,
        ValkeyServer(**ALWAYS) as replica,
    ):
        replica.follow(primary)
        async with (
            fleet(tmp_path, 2, primary.url, "replicas:1") as workers,
            Visitor(workers, 0) as writer,
            Visitor(workers, 1, f"{AT_SECOND}/1") as reader,
        ):
            # The first one has a home, which one of the workers is; only the reader's worker has
            # the second one in a queue.
            for channel in ("/kept/a", "/kept/b", "/kept/c", "/news"):
                assert (await reader.subscribe(channel))["successful"]
                assert await writer.publish(channel, channel, persistent=True)
                assert await writer.publish(channel, f"{channel} with a key", key=channel)
                await reader.hear({channel, f"{channel} with a key"})
