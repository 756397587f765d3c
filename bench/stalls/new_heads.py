"""Many sessions that send a request with a head that is new on its connection, at the same time.

Runs in another process, see `Elsewhere`.
"""

import sys

from bench.measure import allow_many_files
from bench.stalls.clients import subscribe
from bench.stalls.returning import Crowd


def main() -> None:
    url, sessions = sys.argv[1], int(sys.argv[2])
    allow_many_files()
    # From the handshake's reply on, each of them sends a cookie.
    crowd = Crowd(url, sessions)
    print("ready", flush=True)
    sys.stdin.readline()
    print(crowd.say(subscribe("/stall/new-heads")), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
