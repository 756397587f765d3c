"""Measures the memory of waiting messages, and a restart with them: `python -m bench.waiting`."""

import argparse
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.plan import BENCH, read_servers
from bench.processes import Server, started, without_stores
from bench.run import CACHE
from bench.stalls.clients import Client, Message, publish, subscribe

# Messages in one request; a session may have 256 pending publishes.
BATCH = 200
_DATA = "x" * 100
# The allocator and the garbage collector need this time after the last request.
_REST_S = 3.0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.waiting", description=__doc__)
    add = parser.add_argument
    add("--messages", type=int, default=100_000)
    add("--receivers", type=int, default=20, help="held-back sessions that share the messages")
    add("--server", default="holdfast")
    add("--cpus", default="0", help="those of the server and its store")
    add("--log", type=Path, default=CACHE / "waiting.log")
    return parser.parse_args()


def channel(number: int) -> str:
    return f"/waiting/{number}"


def receive(url: str, number: int, *, is_held: bool) -> Client:
    """Return the client of a named session."""
    options = {"session": f"receiver{number}/1", "dispatcherActive": not is_held}
    return Client(url, {"ack": True, "delivery": options})


def hold(url: str, number: int) -> None:
    """Make a session that is held back, and leave it."""
    client = receive(url, number, is_held=True)
    client.say(subscribe(channel(number)))
    client.connect(ack=0)
    client.close()


def resident(pids: Iterable[int]) -> int:
    """Return the bytes of memory of these processes."""
    pages = [int(Path("/proc", str(pid), "statm").read_text().split()[1]) for pid in pids]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def worked(pids: Iterable[int]) -> float:
    """Return the seconds of processor time that these processes have used."""
    stats = [Path("/proc", str(pid), "stat").read_text().rpartition(")")[2] for pid in pids]
    ticks = [int(word) for stat in stats for word in stat.split()[11:13]]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def halves(server: Server) -> tuple[list[int], list[int]]:
    """Return the processes of the server and its supervisor, and those of its store."""
    of_server = without_stores(server.pids)
    return of_server, [pid for pid in server.pids if pid not in of_server]


def both(server: Server) -> tuple[int, int]:
    """Return the memory of the server and of its store."""
    time.sleep(_REST_S)
    of_server, of_store = halves(server)
    return resident(of_server), resident(of_store)


def fill(url: str, receivers: int, messages: int) -> None:
    """Publish this number of messages, each for one receiver."""
    publisher = Client(url)
    for begin in range(0, messages, BATCH):
        batch = range(begin, min(begin + BATCH, messages))
        replies = publisher.say(*[publish(channel(n % receivers), f"{n} {_DATA}") for n in batch])
        check(replies, len(batch))
    publisher.close()


def check(replies: Sequence[Message], expected: int) -> None:
    kept = sum(bool(reply.get("successful")) for reply in replies)
    if kept != expected:
        raise RuntimeError(f"{kept} of {expected} messages were accepted: {replies[-1]}")


def size_of_event() -> int:
    """Return the approximate bytes of an event as the server keeps it."""
    return len(f'{{"data":"50000 {_DATA}","channel":"{channel(10)}"}}')


def drain(client: Client) -> int:
    """Fetch all that waits for the session; return the number of messages."""
    count = ack = 0
    while True:
        *events, reply = client.connect(ack=ack)
        count += len(events)
        ack = reply["ext"]["ack"]
        if not events:
            return count


def main() -> None:
    options = parse_arguments()
    spec = read_servers(BENCH / "servers.toml")[options.server]
    options.log.parent.mkdir(parents=True, exist_ok=True)
    messages, receivers = options.messages, options.receivers
    with tempfile.TemporaryDirectory() as data:
        begun = time.perf_counter()
        with started(spec, data, cpus=options.cpus, log=options.log) as server:
            empty = time.perf_counter() - begun
            for number in range(receivers):
                hold(server.url, number)
            # The first messages also create what all of them share.
            fill(server.url, receivers, BATCH)
            before = both(server)
            begun = time.perf_counter()
            fill(server.url, receivers, messages)
            filled = time.perf_counter() - begun
            after = both(server)
        begun = time.perf_counter()
        with started(spec, data, cpus=options.cpus, log=options.log) as server:
            listening = time.perf_counter() - begun
            client = receive(server.url, 0, is_held=False)
            [first, *_] = client.connect(ack=0)
            first_after = time.perf_counter() - begun
            busy = [worked(pids) for pids in halves(server)]
            restored = both(server)[0]
            client.close()
            found = drain(receive(server.url, 0, is_held=False))
    expected = len(range(0, BATCH, receivers)) + len(range(0, messages, receivers))
    if "data" not in first or found != expected:
        raise RuntimeError(f"{found} of {expected} messages came after the restart: {first}")
    in_server, in_store = ((now - then) / messages for then, now in zip(before, after, strict=True))
    print(f"{messages} messages of {size_of_event()} bytes for {receivers} sessions\n")
    print("| figure | measured |\n| --- | --- |")
    print(f"| bytes a message in the server, its {size_of_event()} included | {in_server:.0f} |")
    print(f"| bytes a message in the store | {in_store:.0f} |")
    print(f"| published, a second | {messages / filled:.0f} |")
    print(f"| first start: listening after, s | {empty:.2f} |")
    print(f"| restart: listening after, s | {listening:.2f} |")
    print(f"| restart: first delivery after, s | {first_after:.2f} |")
    print(f"| processor time until then, s: server, store | {busy[0]:.2f}, {busy[1]:.2f} |")
    print(f"| memory of the server before the restart, MB | {after[0] / 1e6:.0f} |")
    print(f"| and after it | {restored / 1e6:.0f} |")


if __name__ == "__main__":
    main()
