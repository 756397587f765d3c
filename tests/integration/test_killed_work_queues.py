"""Work is done although its server is killed, wherever the work is then."""

from pathlib import Path

from tests.integration.test_killed_point_to_point import Client, kill
from tests.serving import Server, end_whoever_lives_in

JOBS = "/jobs/a"


def worker(server: Server) -> Client:
    client = Client(server, ack=True)
    (reply,) = client.send("/meta/subscribe", subscription=JOBS)
    assert reply["successful"], reply
    return client


def test_work_is_done_although_its_server_is_killed_twice(tmp_path: Path) -> None:
    channels = {"/jobs/*": {"work_queue": True}}
    settings = {"data": str(tmp_path / "data"), "max_interval": 500, "channels": channels}
    servers = [Server(settings)]
    try:
        boss = Client(servers[0])
        for number in range(8):
            (reply,) = boss.send(JOBS, data=number)
            assert reply["successful"], reply
        # While it waits for a receiver.
        kill(servers[0])
        servers.append(Server(settings))
        assert worker(servers[1]).fetch(0) == [*range(8)]
        # While a receiver has it and has not said that it arrived.
        kill(servers[1])
        servers.append(Server(settings))
        assert worker(servers[2]).fetch_soon() == [*range(8)]
    finally:
        # The last one has the store that the others left.
        for server in reversed(servers):
            server.stop()
        end_whoever_lives_in(tmp_path)
