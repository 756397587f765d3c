"""A successor in a process of its own. Arguments: the descriptors of the listener and the door."""

import asyncio
import json
import resource
import socket
import sys
from time import process_time

import uvloop

from holdfast.web.doors.adoption import adopt
from tests.web.doors.stage import PATIENT, House
from tests.web.rig import Rig


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def succeed(listening: socket.socket, link: socket.socket) -> None:
    """Adopt all connections, say what that cost, and serve until the end of the input."""
    async with Rig(options=PATIENT) as rig:
        house = House(rig, listening)
        await house.open()
        say("ready")
        loop = asyncio.get_running_loop()
        # The first packet begins it.
        arrived = asyncio.Event()
        loop.add_reader(link, arrived.set)
        await arrived.wait()
        loop.remove_reader(link)
        before_s = process_time()
        adopted = await adopt(link, {"main": house.listener})
        await house.listener.settled()
        say(json.dumps([adopted, process_time() - before_s]))
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sockets = [socket.socket(fileno=int(each)) for each in sys.argv[1:]]
    uvloop.run(succeed(*sockets))
