"""What a message costs in memory while it waits, besides its bytes."""

import gc
import tracemalloc

import pytest

from tests.unit.bayeux.harness import server_of

COUNT = 1000
# In bytes; 260 were measured.
MOST = 500


@pytest.mark.slow
def test_a_waiting_message_does_not_keep_its_request_in_memory() -> None:
    server = server_of()
    client = server.connected(ext={"ack": True})
    client.subscribe("/a")
    sender = server.connected()
    # Some objects are made for the first message alone.
    sender.publish("/a", 0)
    queue = client.session.queue
    padding = {"channel": "/nobody", "data": "x" * 20_000}
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(COUNT):
            sender.send(padding, {"channel": "/a", "data": {"number": number}})
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(queue.new) == COUNT + 1
    each = (after - before - sum(len(message.wire) for message in queue.new)) / COUNT
    assert each < MOST
