"""Clients that use every feature of the wire, and what they and the server said."""

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from tests.abuse.attacker import TIMEOUT_S, Answer, Person
from tests.serving import Server, Settings
from tests.unit.login.signing import token

Message = dict[str, Any]
Said = list[Message]
SETTINGS: Settings = {
    "handshake_reconnect": True,
    "timestamp": True,
    "max_batch": 100,
    "channels": {"/kept/**": {"history": 2, "durable": True}, "/rooms/**": {"presence": True}},
}
TIMES = {"tc": 1, "l": 0, "o": 0}
CHOSEN = {
    "session": {"name": "joe/1", "timeout": 60_000, "maxSessions": 5, "clearSessions": False},
    "retries": -1,
    "delay": 100,
    "responseTimeout": 50_000,
    "dispatcherActive": True,
    "maxEntries": 50,
    "oneway": False,
    "onUserException": "continue",
    "queue": {"maxEntries": 1000, "maxBytes": 1_000_000},
    "secret": "between us",
    "ptp": True,
}


class Talker(Person):
    """A client whose messages, and those that it gets, are written down."""

    def __init__(self, server: Server, sent: Said, heard: Said, **handshake: Any) -> None:
        self._sent, self._heard = sent, heard
        # What it has not looked at; events may come with any reply.
        self._unread: Said = []
        self._acknowledged: Mapping[str, Any] = {}
        super().__init__(server.url, **handshake)

    def say(self, *messages: Mapping[str, Any]) -> None:
        self._sent.extend(dict(message) for message in messages)
        super().say(*messages)

    def answer(self) -> Answer:
        answer = super().answer()
        self._heard.extend(answer.messages())
        self._unread.extend(answer.messages())
        return answer

    def tell(self, channel: str, **fields: Any) -> Message:
        """Send a message; return the reply to it."""
        return self.ask(self.message(channel, **fields)).messages()[-1]

    def hear(self, *, until: Callable[[Message], bool], **ext: Any) -> Message:
        """Connect, at first with this `ext` if any, until there is such a message."""
        deadline = time.monotonic() + TIMEOUT_S
        if ext:
            self._connect(ext)
        while (found := self._next(until)) is None:
            assert time.monotonic() < deadline, self._heard[-5:]
            self._connect(self._acknowledged)
        return found

    def _connect(self, ext: Mapping[str, Any]) -> None:
        connect = self.connect_message(advice={"timeout": 1000, "interval": 0}, ext=ext)
        reply = self.ask(connect).messages()[-1]
        if "ack" in reply.get("ext", {}):
            self._acknowledged = {"ack": reply["ext"]["ack"]}

    def _next(self, until: Callable[[Message], bool]) -> Message | None:
        while self._unread:
            message = self._unread.pop(0)
            if until(message):
                return message
        return None


def on(channel: str) -> Callable[[Message], bool]:
    return lambda message: message["channel"] == channel and "data" in message


class Talk:
    """All that was said in one server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.sent: Said = []
        self.heard: Said = []
        self._token = (server.data / "admin-token").read_text().strip()

    def client(self, **ext: Any) -> Talker:
        return Talker(self.server, self.sent, self.heard, **({"ext": ext} if ext else {}))

    def run(self) -> None:
        self._refuse_and_replay()
        self._keep()
        self._ask_each_other()
        self._address()
        self._erase()
        self._be_present()
        self._be_refused()

    def _refuse_and_replay(self) -> None:
        authentication = {"token": self._token}
        with (
            self.client(ack=True, authentication=authentication) as watcher,
            self.client(ack="true", delivery=CHOSEN, replay=True, timesync=TIMES) as joe,
            self.client() as plain,
        ):
            watcher.subscribe("/sys/deadMessage")
            options = {"filter": "data.n > 0", "local": True, "notify": True, "oneway": False}
            options |= {"persistent": True, "newestOnly": False, "responds": True}
            joe.tell("/meta/subscribe", subscription="/orders/*", ext={"delivery": options})
            joe.ask(joe.connect_message(ext={"ack": 0, "timesync": TIMES}))
            plain.subscribe("/orders/*", "/elsewhere")
            plain.connect()
            first = {"priority": 9, "persistent": True, "properties": {"of": "plain"}, "key": "1"}
            first |= {"expiration": {"lifeTime": 60_000, "forceDestroy": False}}
            first |= {"refuseHeld": True, "forceUpdate": True}
            plain.tell("/orders/1", data={"n": 1}, ext={"delivery": first, "own": "key"}, own=1)
            plain.tell("/orders/2", data={"n": 2}, id=7, ext={"delivery": {"delay": 10}})
            plain.hear(until=on("/orders/2"))
            seq = self._seq(joe.hear(until=on("/orders/1")))
            later = {"seq": seq, "errorCode": "communication.busy", "message": "later", "delay": 1}
            joe.hear(until=on("/orders/1"), delivery={"verdicts": [later], "pending": []})
            joe.tell("/service/delivery", data={"verdicts": [{"seq": seq + 900, "state": "OK"}]})
            again = joe.hear(until=on("/orders/1"), delivery={"pending": [seq + 1]})
            self._bury(joe, watcher, self._seq(again))
            joe.tell("/meta/disconnect", ext={"delivery": {"end": True, "discard": True}})

    def _bury(self, joe: Talker, watcher: Talker, seq: int) -> None:
        bad = {"seq": seq, "errorCode": "user.paper.empty", "message": "no paper"}
        joe.tell("/service/delivery", data=[bad])
        letter = watcher.hear(until=on("/sys/deadMessage"), ack=0)
        assert letter["data"]["errorCode"] == "user.paper.empty"
        self._replay(letter["data"]["receiver"])
        joe.hear(until=lambda it: "generation" in it.get("ext", {}).get("delivery", {}), ack=0)

    def _replay(self, receiver: str) -> None:
        body = {"filter": {"receiver": receiver.removeprefix("client/")}, "dry_run": False}
        request = urllib.request.Request(
            f"{self.server.url}/admin/api/v1/replays",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60):
            pass

    def _seq(self, event: Message) -> int:
        return int(event["ext"]["delivery"]["seq"])

    def _keep(self) -> None:
        with self.client(delivery=True) as reader, self.client() as writer:
            for n in range(3):
                writer.publish("/kept/a", n)
            history = {"history": {"numEntries": 1, "newestFirst": False}, "initialUpdate": True}
            reader.tell("/meta/subscribe", subscription=["/kept/a"], ext={"delivery": history})
            reader.hear(until=on("/kept/a"))
            for replay in (-2, True, {"time": 0}, {"/kept/a": -1, "/kept/b": {"cursor": 5}}):
                writer.tell("/meta/subscribe", subscription="/kept/*", ext={"replay": replay})
            place = writer.connect().messages()[-1]["ext"]["replay"]
            writer.tell("/meta/subscribe", subscription="/kept/a", ext={"replay": place})
            writer.tell("/meta/unsubscribe", subscription="/kept/*")

    def _ask_each_other(self) -> None:
        with (
            self.client(request=True) as asker,
            self.client(ack=True, delivery={"retries": 0}) as one,
        ):
            ret = self.heard[-2]["ext"]["ret"]
            one.subscribe("/power")
            one.connect()
            for n, (channel, mode) in enumerate(
                (("/power", "first"), ("/nobody", "one"), ("/power", "all"), ("/power", "first"))
            ):
                ext = {"replyTo": f"{ret}/400000{n}", "timeout": 5000, "request": mode}
                asker.tell(channel, data="?", ext={**ext, "mime": "text/plain"})
                if channel == "/nobody":
                    continue
                request = one.hear(until=on(channel), ack=n)
                if n < 3:
                    ext = {"mime": "text/csv"} if n else {"status": "ERROR"}
                    one.tell(request["ext"]["replyTo"], data=230, ext=ext)
                else:
                    refusal = {"seq": self._seq(request), "errorCode": "user.update.error"}
                    one.tell("/service/delivery", data={**refusal, "message": "no power"})
            asker.hear(until=lambda it: it.get("error", "").endswith("responder_error"))
        with self.client(request=ret):
            pass

    def _address(self) -> None:
        with self.client(delivery={"session": "pia/1"}) as pia, self.client() as bob:
            to: list[Any] = ["pia", "nobody", {"name": "none", "ignoreSilently": True}]
            to.append({"name": "late", "forceQueuing": True})
            bob.tell("/service/ptp", data={"destinations": to, "content": 1, "channel": ""})
            options = {"destinations": ["client/pia/1"], "subscribable": False}
            bob.tell("/letters", data=2, ext={"delivery": options})
            bob.tell("/letters", data=3, ext={"delivery": {"destinations": ["nobody"]}})
            pia.hear(until=on("/letters"))

    def _erase(self) -> None:
        named = {"ack": True, "delivery": {"session": "eve/1"}}
        with self.client(**named) as eve, self.client() as owner:
            history = {"maxEntries": 5, "maxBytes": 1000}
            made = {"destroyDelay": -1, "readonly": False, "history": history}
            config = {"topic": made, "administrative": True}
            owner.tell("/topics/1", data=None, ext={"delivery": config})
            eve.subscribe("/topics/1")
            eve.connect()
            eve.tell("/meta/disconnect", ext={"ack": 1})
            owner.tell("/service/topics", data={"erase": "/topics/1", "forceDestroy": True})
            owner.hear(until=on("/service/topics"))
        with self.client(**named) as eve:
            reply = self.heard[-1]["ext"]["delivery"]
            assert reply["lostSubscriptions"] == ["/topics/1"]
            eve.hear(until=on("/topics/1"), ack=0)

    def _be_present(self) -> None:
        with self.client() as member, self.client() as looker:
            looker.subscribe("/sys/presence/rooms/a")
            member.subscribe("/rooms/a")
            looker.hear(until=on("/sys/presence/rooms/a"))
            looker.tell("/service/presence", data={"channel": "/rooms/a", "limit": 10})
            looker.hear(until=on("/service/presence"))

    def _be_refused(self) -> None:
        """Send what the types do not allow: only what the server says is written down."""
        with Talker(self.server, [], self.heard) as client:
            client.tell("/meta/subscribe")
            client.publish("/pattern/*", 1)
            client.tell("/meta/unsubscribe", subscription=["/never"])
            client.tell("/orders/1", data=1, ext={"delivery": {"priority": 10}})
            types = {"version": "1.0", "supportedConnectionTypes": ["iframe"]}
            client.tell("/meta/handshake", **types)
            client.client_id = "invented"
            client.connect()


def greeted(server: Server) -> Said:
    """What comes with a login, at a server whose handshakes bring messages."""
    talk = Talk(server)
    authentication = {"token": token(exp=int(time.time()) + 600)}
    with talk.client(ack=True, authentication=authentication):
        return talk.heard
