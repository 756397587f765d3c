"""A server that says to the supervisor what a plan wants, and to clients which process it is.

With "workers" there are several. The plan of one of them has its number: "leave.1". The plan of
certain code has its name: "ready of broken".
With "shards" the first one claims the shards in "claims", and gives the one in "gives", if any;
other hosts have the ones in "loses". The number of a shard's server is the one after the shard's.
It runs as `holdfast serve` where the package `holdfast` consists of this and the real supervisor.
`plan.json` says by step what happens there: "say" as usual, "fail", "be lost", "die" as by kill -9,
"freeze" as by a debugger, "exit" with 3, "be fenced", "hang", "wait" until the test lets it go on.
The steps are start, prepared, opened, leave, back, ready and go.
"""

import json
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.supervisor.control import (
    CONTROL,
    CONTROL_FILE,
    LINK,
    LOCK,
    Channel,
    Do,
    Say,
    given_channel,
    is_own,
    socket_for_commands,
)
from holdfast.supervisor.packets import PeerGone

HOME = Path(os.environ["FAKE_HOME"])
ALIVE_S = 0.1


def read_plan() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HOME / "plan.json").read_text())
    return found


# As code is: from the moment of the import.
CODE = read_plan().get("code", "first")


class FakeServer:
    """One process that serves."""

    def __init__(self, channel: Channel) -> None:
        self._plan = read_plan()
        self._channel = channel
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ, self._hear)
        self._listening: dict[str, socket.socket] = {}
        self._is_accepting = self._is_waiting = self._is_stopping = False
        self._said_alive = 0.0
        self._shard, self._workers, self._is_first = 0, self._plan.get("workers", 1), False
        self._shards = self._plan.get("shards", 0)
        self._is_one_of_several = self._workers > 1 or self._shards > 0
        # What a server that claims shards has said last of them, and of the one to give.
        self._claims: object = None
        self._gives: object = None
        self._has_lost = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop())

    def run(self) -> None:
        """Run until it is told to end, or until the supervisor has gone."""
        try:
            self._run()
        except PeerGone:
            note("abandoned")
            os._exit(0)

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select(ALIVE_S):
                key.data()
            if "silent" not in self._plan and time.monotonic() - self._said_alive > ALIVE_S:
                self._said_alive = time.monotonic()
                self._channel.send(say=Say.ALIVE)
                if self._shards and self._is_accepting:
                    self._claim() if self._shard == 0 else self._look()

    def _claim(self) -> None:
        """Say again what the plan of now wants, as one that looks at stores does."""
        plan = read_plan()
        claims = [{"shard": each, "unraised": "stood"} for each in plan.get("claims", ())]
        self._channel.send(say=Say.CLAIM, shards=claims)
        if (claimed := plan.get("claims", [])) != self._claims:
            self._claims = claimed
            note(f"claims {claimed}")
        if (gives := plan.get("gives")) != self._gives:
            self._gives = gives
            self._channel.send(say=Say.GIVE, shard=gives, host="another")

    def _look(self) -> None:
        """Lose the shard if the plan of now wants it."""
        if self._shard - 1 in read_plan().get("loses", ()) and not self._has_lost:
            self._has_lost = True
            self._channel.send(say=Say.FENCED)

    def _stop(self) -> None:
        if "stop" in self._plan:
            return
        if "settles_to_stop" in self._plan:
            self._is_stopping = True
            self._settle()
        else:
            self._end()

    def _end(self) -> None:
        note("stopped")
        os._exit(self._plan.get("code_of_stop", 0))

    def _leave(self) -> None:
        is_shard = self._workers > 1 or (self._shards > 0 and self._shard > 0)
        if is_shard and self._shard not in self._plan.get("earlier", []):
            self._settle()
        else:
            self._step("leave", say=Say.LEFT)

    def _settle(self) -> None:
        note("settles")
        self._step("settled", say=Say.SETTLED)

    def _rest(self) -> None:
        note("rests")
        if self._is_stopping:
            self._end()
        self._step("leave", say=Say.LEFT)

    def _hear(self) -> None:
        while (parcel := self._channel.receive()) is not None:
            self._obey(parcel.fields, parcel.descriptors)

    def _obey(self, asked: dict[str, Any], descriptors: list[int]) -> None:
        match asked["do"]:
            case Do.START:
                self._start(asked, descriptors)
            case Do.LEAVE:
                self._accept(False)
                self._leave()
            case Do.REST:
                self._rest()
            case Do.OPEN:
                self._try_to_open()
            case Do.SERVE:
                self._serve()
            case Do.WELCOME:
                self._welcome()
            case Do.TAKE_BACK:
                note("took back")
                self._accept(True)
                self._step("back", say=Say.BACK)
            case Do.GO:
                self._go()
            case _:
                self._obey_on_a_host(asked)

    def _obey_on_a_host(self, asked: dict[str, Any]) -> None:
        match asked["do"]:
            case Do.HAVE:
                failed = f" failed {asked['failed']}" if asked["failed"] else ""
                early = "" if self._is_accepting else "too early: "
                note(f"{early}has {asked['shards']} serving {asked['serving']}{failed}")
            case Do.GIVE:
                note(f"gives its shard to {asked['host']}")
                self._give(read_plan())
            case Do.PART:
                note(f"parts from shard {self._shard - 1}")
                self._end()
            case Do.ADOPT:
                note("adopts")
            case other:
                # How often servers ended is told at any moment, for metrics only.
                if other != Do.KNOW:
                    note(f"does not know {other}")

    def _give(self, plan: dict[str, Any]) -> None:
        time.sleep(plan.get("giving_s", 0.0))
        if plan.get("keeps"):
            self._channel.send(say=Say.BACK)
            return
        self._channel.send(say=Say.FENCED)
        # Its connections.
        time.sleep(plan.get("handing_s", 0.0))
        self._end()

    def _go(self) -> None:
        note("went")
        if "go" in self._plan:
            self._step("go")
        time.sleep(self._plan.get("going_s", 0.0))
        os._exit(0)

    def _make_orphan(self) -> None:
        if os.fork() == 0:
            if (orphan := os.fork()) == 0:
                time.sleep(0.2)
            else:
                note(f"orphan {orphan}")
            os._exit(0)
        os.wait()

    def _start(self, asked: dict[str, Any], descriptors: list[int]) -> None:
        if "orphan" in self._plan:
            self._make_orphan()
        given = dict(zip(asked["names"], descriptors, strict=True))
        if asked["stand_in"]:
            note(f"stands in with {sorted(given)}")
            if "stand_in" in self._plan:
                self._step("stand_in")
            return
        is_successor, self._is_first = asked["successor"], asked["first"]
        self._shard = asked["shard"]
        note(f"started {sorted(given)}" + (" as successor" if is_successor else ""))
        if self._shards and self._shard:
            note(f"opens {self._shard - 1} because of {asked['claim']}")
        self._listen(given)
        if self._is_one_of_several and self._shard == 0:
            kept = [each.fileno() for each in self._listening.values()]
            about = {"names": [*self._listening], "workers": self._workers, "links": "links"}
            self._step("listening", *kept, say=Say.LISTENING, shards=self._shards, **about)
        self._listening["main.0"].setblocking(False)
        if asked["waits"] or "waits" in self._plan:
            self._wait()
        elif is_successor:
            self._step("prepared", say=Say.PREPARED)
        else:
            self._open_store()

    def _listen(self, given: dict[str, int]) -> None:
        for name in self._names():
            if name in given and name != self._plan.get("replaces"):
                self._listening[name] = socket.socket(fileno=given[name])
            elif name == CONTROL:
                (HOME / CONTROL_FILE).unlink(missing_ok=True)
                self._listening[name] = socket_for_commands()
                self._listening[name].bind(str(HOME / CONTROL_FILE))
            else:
                self._listening[name] = self._open(name)

    def _names(self) -> list[str]:
        """What it keeps for the servers after it."""
        several = [LOCK, LINK] if self._is_one_of_several else []
        return ["main.0", *([] if self._shard else [CONTROL]), *several]

    def _open(self, name: str) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX)
        path = HOME / self._plan.get("at", name)
        if is_own(name):
            path = HOME / f"{name}.{self._shard}"
        path.unlink(missing_ok=True)
        listening.bind(str(path))
        listening.listen()
        return listening

    def _try_to_open(self) -> None:
        if self._is_waiting:
            note("looks at the store")
        if "waits" not in self._plan:
            self._open_store()

    def _wait(self) -> None:
        self._is_waiting = True
        kept = [each.fileno() for each in self._listening.values()]
        about = {"names": [*self._listening], "workers": self._workers, "links": "links"}
        self._step("waiting", *kept, say=Say.WAITING, **about)

    def _open_store(self) -> None:
        if self._is_one_of_several:
            self._step("opened", say=Say.OPENED)
        else:
            self._serve()

    def _serve(self) -> None:
        self._accept(True)
        kept = [each.fileno() for each in self._listening.values()]
        about = {"url": "http://fake", "names": [*self._listening], **self._plan.get("told", {})}
        self._step("ready", *kept, say=Say.READY, **about)
        if "dies_when_ready" in self._plan:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._is_first and self._workers == 1:
            self._welcome()

    def _welcome(self) -> None:
        print("holdfast is ready: http://fake", flush=True)  # noqa: T201 - as a server does

    def _step(self, name: str, *given: int, **said: object) -> None:
        plans = f"{name}.{self._shard}", f"{name} of {CODE}", name
        match next((self._plan[each] for each in plans if each in self._plan), "say"):
            case "say" if said:
                self._channel.send(given, **said)
            case "fail":
                self._channel.send(say=Say.FAILED, why=self._plan.get("why", "the test wants it"))
                os._exit(2)
            case "be fenced":
                self._channel.send(say=Say.FENCED)
                os._exit(1)
            case "be lost":
                # It is about to end.
                self._channel.send(say=Say.FAILED, why="it cannot go on", ends=True)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "freeze":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "exit":
                sys.stderr.write("holdfast cannot start: the test wants it\n")
                os._exit(self._plan.get("with", 3))
            case "refuse":
                self._channel.send(say=Say.FAILED, why="it is too late")
                self._accept(True)
            case "wait" | float() as how_long:
                pause(how_long)
                self._channel.send(given, **said)
            case _:
                note(f"hangs at {name}")

    def _accept(self, is_wanted: bool) -> None:
        if is_wanted:
            about = {"pid": os.getpid(), "code": CODE}
            new = HOME / f"serving.{self._shard}.new"
            new.write_text(json.dumps(about))
            new.rename(HOME / f"serving.{self._shard}")
        if is_wanted and not self._is_accepting:
            self._selector.register(self._listening["main.0"], selectors.EVENT_READ, self._answer)
        elif self._is_accepting and not is_wanted:
            self._selector.unregister(self._listening["main.0"])
        self._is_accepting = is_wanted

    def _answer(self) -> None:
        try:
            client, _ = self._listening["main.0"].accept()
        except BlockingIOError:
            # Another one was faster.
            return
        with client:
            client.send(json.dumps({"pid": os.getpid(), "code": CODE}).encode())
        plan = read_plan()
        time.sleep(plan.get("hangs_s", 0.0))
        until = time.monotonic() + plan.get("computes_s", 0.0)
        while time.monotonic() < until:
            pass


def pause(how_long: float | str) -> None:
    """Wait so many seconds, or until the test lets this server go on."""
    if isinstance(how_long, float):
        time.sleep(how_long)
        return
    while not (HOME / "go on").exists():
        time.sleep(0.01)


def note(text: str) -> None:
    """Add a line to what the test reads."""
    with (HOME / "notes").open("a") as notes:
        notes.write(f"{os.getpid()} {text}\n")


def serve() -> None:
    channel = given_channel()
    if channel is None:
        note("unsupervised")
    else:
        FakeServer(channel).run()
