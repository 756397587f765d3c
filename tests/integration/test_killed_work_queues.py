"""Work reaches a receiver although the server is killed, wherever the work is then."""

from pathlib import Path

from tests.integration.successors import following
from tests.integration.test_killed_point_to_point import Client
from tests.serving import Server

JOBS = "/jobs/a"


def worker(server: Server) -> Client:
    client = Client(server, ack=True)
    (reply,) = client.send("/meta/subscribe", subscription=JOBS)
    assert reply["successful"], reply
    return client


def test_work_is_delivered_although_the_server_is_killed_twice(tmp_path: Path) -> None:
    channels = {"/jobs/*": {"work_queue": True}}
    with following(tmp_path, max_interval=2000, channels=channels) as servers:
        boss = Client(servers.last)
        for number in range(8):
            (reply,) = boss.send(JOBS, data=number)
            assert reply["successful"], reply
        # Killed while the work waits for a receiver.
        servers.kill()
        assert worker(servers.last).fetch(0) == [*range(8)]
        # Killed while a receiver has the work unacked.
        servers.kill()
        assert worker(servers.last).fetch_soon() == [*range(8)]
