"""Many connections that send half a body each at once, and a little more of it later.

Runs in a process of its own, see `Elsewhere`.
"""

import socket
import sys
from urllib.parse import urlsplit

from bench.measure import allow_many_files

_LITTLE, _TIMES = 100, 5


def main() -> None:
    url, connections, size = urlsplit(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    allow_many_files()
    place = (url.hostname or "", url.port or 0)
    links = [socket.create_connection(place) for _ in range(connections)]
    head = f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
    half = f"{head}Content-Length: {2 * size}\r\n\r\n[".encode() + b" " * size
    print("ready", flush=True)
    sys.stdin.readline()
    for some in (half, *[b" " * _LITTLE] * _TIMES):
        for link in links:
            link.sendall(some)
    print("sent", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
