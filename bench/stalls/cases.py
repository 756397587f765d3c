"""The most expensive requests that the limits allow: each case prepares one and its client.

Most need something first: a session with ten thousand messages in flight, or a room of a thousand.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple, Protocol

from bench.stalls.clients import Client, Message, Reader, connect, publish, subscribe
from bench.stalls.elsewhere import Elsewhere
from bench.stalls.volleys import Link, Socket, Volley

# The limits: messages of a request, entries of a queue, subscriptions of a session, channels with
# cursors of their own, segments of a channel, bytes of a request, depth of JSON, and values in it.
_BATCH = 5_000
_QUEUE = 10_000
_PATTERNS = 10_000
_NAMED = 1_000
_SEGMENTS = 64
_REQUEST = 4 * 1024 * 1024
_DEPTH = 500
# A name counts as one, an array or an object as two; the message itself has some, too.
_VALUES = 65_000 - 50
_MEMBERS = _VALUES // 2
_ROOM = 1_000
# Sessions that end together, the messages that wait for each, and its session timeout.
_EXPIRING, _LETTERS_EACH, _EXPIRE_MS = 100, 500, 1_000
# Sessions that return together, and the messages that wait for each.
_RETURNING, _MISSED = 4_000, 100
# Open connections that all send a request at the same time.
_ASKING = 1_000
# Connections that send half a body at the same time, and how much that is.
_HALVES, _HALF = 1_000, 50_000
# Small messages in one segment, and large bodies that are sent at the same time.
_TOGETHER, _BODIES = 100, 20
# Different filters of the server, those of one session that apply to the same channel, and the
# length of the text that their patterns search.
_FILTERS, _FILTERS_EACH, _SEARCHED = 250, 50, 1024
# Topics of the server, and topics that one call lists or erases.
_TOPICS, _PAGE = 60_000, 1_000
# Requests that wait for one responder, and those of one session.
_REQUESTS, _OUTSTANDING = 10_000, 250
# Requests without a session that wait for a message of a history.
_READERS = 2_000
# Sessions that publish at once where an application decides: as many as come at once elsewhere,
# because to read more connections takes longer, whatever they ask.
_DECIDED = 4_000
# Messages that wait for a webhook, and their size.
_HOOKED, _HOOKED_SIZE = 10_000, 100_000
# Nearly a full queue: the last batch must fit.
_IN_FLIGHT = 9_900


class Sender(Protocol):
    """Sends an attack."""

    def post(self, body: bytes) -> bytes:
        """Return the response, or when all responses are here."""

    def close(self) -> None: ...


class Attack(NamedTuple):
    """A request, the client that sends it, and the clients that must stay connected meanwhile."""

    client: Sender
    body: bytes
    crowd: tuple[Client | Reader, ...] = ()
    # Whether the request makes the same work if it is sent again.
    is_repeatable: bool = False
    # Whether it lets the server stand, so that only its processor time says how long others wait.
    lets_stand: bool = False


Case = Callable[[str], Attack]


def _attack(client: Client, *messages: Message) -> Attack:
    return Attack(client, client.body(messages))


def _again(attack: Attack) -> Attack:
    """Return an attack whose request makes the same work if it is sent again."""
    return attack._replace(is_repeatable=True)


def _member(url: str, name: str, *, acks: bool = False, retries: int = 0) -> Client:
    """Return a named session that gives verdicts."""
    ext: Message = {"delivery": {"session": f"stall-{name}/1", "retries": retries}}
    client = Client(url, {**ext, "ack": True} if acks else ext)
    client.connect()
    return client


def _fill(url: str, channel: str, count: int, **fields: object) -> None:
    """Publish this number of messages, a few at a time: pending publishes are limited."""
    publisher = Client(url)
    for at in range(0, count, 250):
        messages = [publish(channel, **fields) for _ in range(min(250, count - at))]
        publisher.say(*messages)
    publisher.close()


def _awaited(
    url: str, name: str, *, patterns: int = 0, acks: bool = False, retries: int = 0
) -> Client:
    """Return a named session with a full queue of waiting messages."""
    client = _member(url, name, acks=acks, retries=retries)
    client.say(subscribe(f"/stall/{name}"))
    if patterns:
        client.say(subscribe(*(f"/stall/{name}/{n}" for n in range(patterns))))
    _fill(url, f"/stall/{name}", _IN_FLIGHT)
    return client


def _laden(
    url: str, name: str, *, patterns: int = 0, acks: bool = False, retries: int = 0
) -> tuple[Client, list[int]]:
    """Return a named session with as many entries in flight as possible, and their numbers."""
    client = _awaited(url, name, patterns=patterns, acks=acks, retries=retries)
    numbers: list[int] = []
    is_more = True
    while is_more:
        ext: Message = {"ack": 0} if acks else {}
        events = [each for each in client.connect(**ext) if "data" in each]
        numbers += [each["ext"]["delivery"]["seq"] for each in events]
        # With acks, the next reply would repeat this one; without them, it has more entries.
        is_more = bool(events) and not acks
    return client, numbers


def _verdicts(client: Client, verdicts: list[Message], **ext: object) -> Attack:
    return _attack(
        client, connect({**ext, "delivery": {"verdicts": verdicts}}, advice={"timeout": 0})
    )


def _deep(channels: int) -> Iterator[str]:
    """Return channel names with the maximum number of segments."""
    for number in range(channels):
        yield "/" + "/".join([str(number), *"x" * (_SEGMENTS - 1)])


# Meta channels


def connects(url: str) -> Attack:
    return _again(_attack(Client(url), *[connect()] * _BATCH))


def handshakes(url: str) -> Attack:
    hello: Message = {"channel": "/meta/handshake", "version": "1.0"}
    hello["supportedConnectionTypes"] = ["long-polling"]
    return _again(_attack(Client(url), *[hello] * _BATCH))


def disconnects(url: str) -> Attack:
    return _attack(Client(url), *[{"channel": "/meta/disconnect"}] * _BATCH)


def disconnect_laden(url: str) -> Attack:
    client, _ = _laden(url, "leave")
    client.connect()
    return _attack(client, {"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})


def subscribes(url: str) -> Attack:
    return _attack(Client(url), *(subscribe(f"/s/{n}") for n in range(_BATCH)))


def subscribes_together(url: str) -> Attack:
    return _attack(Client(url), subscribe(*(f"/t/{n}" for n in range(_PATTERNS))))


def subscribes_named(url: str) -> Attack:
    client = _member(url, "subscribes")
    client.say(subscribe(*(f"/n/{n}" for n in range(_PATTERNS - _BATCH))))
    return _attack(client, *(subscribe(f"/m/{n}") for n in range(_BATCH)))


def unsubscribes(url: str) -> Attack:
    client = _member(url, "unsubscribes")
    client.say(subscribe(*(f"/u/{n}" for n in range(_PATTERNS))))
    messages = [{"channel": "/meta/unsubscribe", "subscription": f"/u/{n}"} for n in range(_BATCH)]
    return _attack(client, *messages)


def deep_patterns(url: str) -> Attack:
    return _attack(_member(url, "deep"), subscribe(*_deep(_PATTERNS)))


def deep_publishes(url: str) -> Attack:
    return _again(_attack(Client(url), *map(publish, _deep(_BATCH))))


# Verdicts and acks


def holdbacks(url: str) -> Attack:
    client, numbers = _laden(url, "holdbacks")
    code = "user.update.holdback"
    return _verdicts(client, [{"seq": seq, "errorCode": code} for seq in numbers])


def refusals(url: str) -> Attack:
    client, numbers = _laden(url, "refusals", patterns=_PATTERNS - 1)
    code = "user.update.deadMessage"
    return _verdicts(client, [{"seq": seq, "errorCode": code} for seq in numbers])


def failures(url: str) -> Attack:
    client, numbers = _laden(url, "failures", retries=-1)
    code = "communication.noConnection"
    return _verdicts(client, [{"seq": seq, "errorCode": code} for seq in reversed(numbers)])


def consents(url: str) -> Attack:
    client, numbers = _laden(url, "consents")
    return _verdicts(client, [{"seq": seq, "state": "OK"} for seq in reversed(numbers)])


def deliveries(url: str) -> Attack:
    return _attack(_awaited(url, "deliveries"), connect(advice={"timeout": 0}))


def acks(url: str) -> Attack:
    client, _ = _laden(url, "acks", acks=True)
    return _attack(client, connect({"ack": 2**31 - 1}), connect({"ack": 1}, advice={"timeout": 0}))


def repeats(url: str) -> Attack:
    client, _ = _laden(url, "repeats", acks=True)
    return _again(_attack(client, connect({"ack": 0}, advice={"timeout": 0})))


def pending(url: str) -> Attack:
    client, numbers = _laden(url, "pending", acks=True)
    ext = {"ack": 0, "delivery": {"pending": numbers}}
    # As many times as `max_values` allows.
    return _again(_attack(client, *[connect(ext, advice={"timeout": 0})] * 7))


def expiries(url: str) -> Attack:
    """Many sessions end together while a connect is held; each leaves letters."""
    crowd = []
    for number in range(_EXPIRING):
        terms = {"name": f"stall-expires-{number}/1", "timeout": _EXPIRE_MS}
        crowd.append(Client(url, {"delivery": {"session": terms}}))
        crowd[-1].say(subscribe("/stall/expires"))
    _fill(url, "/stall/expires", _LETTERS_EACH)
    for each in crowd:
        each.say({"channel": "/meta/disconnect"})
    client = Client(url)
    client.connect()
    return _attack(client, connect(advice={"timeout": 4 * _EXPIRE_MS}))._replace(crowd=tuple(crowd))


def returns(url: str) -> Attack:
    """Many sessions come back at once, with many messages each."""
    return Attack(Elsewhere("bench.stalls.returning", url, _RETURNING, _MISSED), b"")


def socket_returns(url: str) -> Attack:
    """The same over WebSocket."""
    return _crowd_of(url, "returning", _RETURNING, _MISSED)


def socket_handshakes(url: str) -> Attack:
    """Many clients connect, and send an upgrade and a handshake at once."""
    return _crowd_of(url, "new", _RETURNING)


def socket_upgrades(url: str) -> Attack:
    """Many connections that are open already send an upgrade and a handshake at once."""
    return _crowd_of(url, "open", _ASKING)


def socket_departures(url: str) -> Attack:
    """Many clients close their sockets at once."""
    return _crowd_of(url, "leaving", _RETURNING)


def unknown_paths(url: str) -> Attack:
    return _crowd_of(url, "asking", _ASKING, "/nothing")


def unknown_operators(url: str) -> Attack:
    """Many clients ask the administration without a token."""
    return _crowd_of(url, "asking", _ASKING, "/admin/api/v1/dead-letters")


def answered_by_all(url: str) -> Attack:
    """A hundred requests, each to a thousand responders, in one segment."""
    crowd = _crowd(url, "/asked/all")
    for each in crowd:
        each.begin(each.body([connect()]))
    link = Socket(url, {"request": True})
    asks = [
        publish("/asked/all", ext={"replyTo": f"{link.ret}/4{n:06}", "timeout": 60_000})
        for n in range(_TOGETHER)
    ]
    bodies = [json.dumps([{**ask, "clientId": link.id}]).encode() for ask in asks]
    volley = Volley([link], [b"".join(map(link.bytes_of, bodies))], _TOGETHER)
    return Attack(volley, b"", crowd)


def long_digits(url: str) -> Attack:
    """Bodies with numbers of thousands of digits, over a connection each."""
    return _bodies(url, "POST /cometd")


def long_digits_published(url: str) -> Attack:
    """The same without a session."""
    return _bodies(url, "POST /publish")


def _bodies(url: str, line: str) -> Attack:
    data = _array("7" * 2_000, 1_000).encode()
    body = b'[{"channel":"/json","data":' + data + b"}]"
    links = [Link(url) for _ in range(_BODIES)]
    return Attack(Volley(links, [each.request(line, body) for each in links], 1), b"")


def _crowd_of(url: str, *words: str | int) -> Attack:
    return Attack(Elsewhere("bench.stalls.crowds", url, *words), b"", lets_stand=True)


def new_heads(url: str) -> Attack:
    """Many sessions subscribe at once, each with a head that is new on its connection."""
    return Attack(Elsewhere("bench.stalls.new_heads", url, _RETURNING), b"")


def half_bodies(url: str) -> Attack:
    return Attack(Elsewhere("bench.stalls.halves", url, _HALVES, _HALF), b"")


def webhook_calls(url: str) -> Attack:
    """Large messages wait for a webhook, whose application answers 16 calls at a time."""
    return Attack(Elsewhere("bench.stalls.hooked", url, _HOOKED, _HOOKED_SIZE), b"")


def slow_backend(url: str) -> Attack:
    """Each of many sessions publishes at once where an application decides, which is slow."""
    return Attack(Elsewhere("bench.stalls.deciding", url, _DECIDED), b"")


def takeover(url: str) -> Attack:
    client, _ = _laden(url, "takeover")
    hello = {"channel": "/meta/handshake", "version": "1.0"}
    ext = {"delivery": {"session": "stall-takeover/1"}}
    return _attack(client, {**hello, "supportedConnectionTypes": ["long-polling"], "ext": ext})


# Requests


def asked(url: str) -> Attack:
    """A session ends that ten thousand requests wait for."""
    client = Client(url)
    client.say(subscribe("/stall/asked"))
    crowd = tuple(_asker(url) for _ in range(_REQUESTS // _OUTSTANDING))
    # Receive all requests first: those that wait would come with the reply.
    while any("data" in each for each in client.connect()):
        pass
    return _attack(client, {"channel": "/meta/disconnect"})._replace(crowd=crowd)


def _asker(url: str) -> Client:
    """Return a client that waits for as many replies as the limits allow."""
    client = Client(url, {"request": True})
    client.connect()
    reply_to = client.ext["ret"] + "/4{:06}"
    asks = [{"replyTo": reply_to.format(n), "timeout": 60_000} for n in range(_OUTSTANDING)]
    answers = client.say(*(publish("/stall/asked", ext=ext) for ext in asks))
    if not all(answer["successful"] for answer in answers):
        raise RuntimeError(f"the server refuses requests: {answers[0]}")
    return client


# Point-to-point


def moves(url: str) -> Attack:
    """A subject with a full queue gets its first session."""
    _address(url, "stall-moves")
    hello = {"channel": "/meta/handshake", "version": "1.0"}
    ext = {"ack": True, "delivery": {"session": "stall-moves/1"}}
    client = Client(url)
    return _attack(client, {**hello, "supportedConnectionTypes": ["long-polling"], "ext": ext})


def moves_back(url: str) -> Attack:
    """A session ends with a full queue that was addressed to its subject."""
    client = _member(url, "moves-back")
    _address(url, "stall-moves-back")
    client.connect()
    return _attack(client, {"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})


def _address(url: str, subject: str) -> None:
    destination = {"name": subject, "forceQueuing": True}
    _fill(url, "/service/ptp", _IN_FLIGHT, data={"destinations": [destination], "content": 1})


# Publishes


def filters(url: str) -> Attack:
    """The server has as many filters as the limits allow.

    Their patterns need a new state for each character of a random text.
    """
    crowd = tuple(Client(url) for _ in range(_FILTERS // _FILTERS_EACH))
    for place, each in enumerate(crowd):
        each.connect()
        for number in range(_FILTERS_EACH):
            own = number + place * _FILTERS_EACH
            patterns = [f"data MATCHES 'y.{{{length}}}z{own}'" for length in (40, 50)]
            ext: Message = {"delivery": {"filter": " OR ".join(patterns)}}
            each.say({**subscribe("/filters" + "/x" * number + "/**"), "ext": ext})
    text = "".join(Random(1).choices("yzab", k=_SEARCHED))
    channel = "/filters" + "/x" * _FILTERS_EACH
    return _attack(Client(url), publish(channel, text))._replace(crowd=crowd)


def fanout(url: str) -> Attack:
    crowd = _crowd(url, "/fanout")
    return _attack(Client(url), *[publish("/fanout")] * _BATCH)._replace(crowd=crowd)


def fanout_waiting(url: str) -> Attack:
    crowd = _crowd(url, "/waiting")
    for each in crowd:
        each.begin(each.body([connect()]))
    return _attack(Client(url), *[publish("/waiting")] * _BATCH)._replace(crowd=crowd)


def fanout_large(url: str) -> Attack:
    crowd = _crowd(url, "/large")
    for each in crowd:
        each.begin(each.body([connect()]))
    return _attack(Client(url), publish("/large", "x" * 60_000))._replace(crowd=crowd)


def _crowd(url: str, channel: str) -> tuple[Client, ...]:
    clients = tuple(Client(url) for _ in range(_ROOM))
    for each in clients:
        each.connect()
        each.say(subscribe(channel))
    return clients


def kept_publishes(url: str) -> Attack:
    _member(url, "kept").say(subscribe("/kept"))
    return _attack(Client(url), *[publish("/kept")] * _BATCH)


def topics_list(url: str) -> Attack:
    """A call lists topics in the order of their names, just after the names have changed."""
    _topics(url, "listed", _TOPICS)
    new = publish("/listed/new", ext={"delivery": {"topic": {"destroyDelay": -1}}})
    return _attack(Client(url), new, _of_topics({"list": "/listed/*", "limit": _PAGE}))


def topics_erase(url: str) -> Attack:
    _topics(url, "erased", _TOPICS)
    return _again(_attack(Client(url), _of_topics({"erase": "/erased/**", "limit": _PAGE})))


def catching_up(url: str) -> Attack:
    _topics(url, "caught", _TOPICS, history=1)
    return _again(_attack(Client(url), _replay(-2, "/caught/**")))


def catching_up_deep(url: str) -> Attack:
    """A replay of all messages of a channel with a deep history."""
    _keep(url, "/deep", _QUEUE)
    return _again(_attack(Client(url), _replay(-2, "/deep")))


def catching_up_nested(url: str) -> Attack:
    """A replay of channels that many patterns of one subscribe match, behind a cursor."""
    stem = "/nested" + "/x" * (_SEGMENTS - 3)
    _topics(url, stem[1:], _BATCH, history=1)
    patterns = [stem[: 7 + 2 * n] + "/**" for n in range(_SEGMENTS - 2)]
    return _again(_attack(Client(url), _replay(1, *patterns)))


def catching_up_named(url: str) -> Attack:
    _topics(url, "each", _PATTERNS, history=1)
    names = _topic_names("each", range(0, _PATTERNS, _PATTERNS // _NAMED))
    return _again(_attack(Client(url), _replay(1, *names)))


def catching_up_filtered(url: str) -> Attack:
    """A subscription checks all kept messages with a filter that selects none of them."""
    _topics(url, "sifted", _BATCH, history=1)
    options = {"filter": "data = 'nothing'", "history": {"numEntries": -1}}
    return _again(_attack(Client(url), {**subscribe("/sifted/**"), "ext": {"delivery": options}}))


def readers_woken(url: str) -> Attack:
    """All that wait for a message of a history are woken by one."""
    _keep(url, "/woken", 1)
    path = "/streams/woken?live=long-poll&offset=now"
    crowd = tuple(Reader(url, path) for _ in range(_READERS))
    for each in crowd:
        each.ask()
    return _attack(Client(url), publish("/woken"))._replace(crowd=crowd)


def event_readers_woken(url: str) -> Attack:
    """All that read the events of a channel get the same message."""
    _keep(url, "/woken", 1)
    crowd = _event_readers(url, ["/events?channel=/woken"] * _READERS)
    return _again(_attack(Client(url), publish("/woken"))._replace(crowd=crowd))


def event_readers_of_patterns(url: str) -> Attack:
    """Many, of which no two read the same, read a pattern of many histories."""
    _topics(url, "sifted", 4_750, history=1)
    paths = [f"/events?channel=/sifted/**&channel=/sifted/{n}" for n in range(_ASKING // 5)]
    [name] = _topic_names("sifted", range(1))
    return _again(_attack(Client(url), publish(name))._replace(crowd=_event_readers(url, paths)))


def _event_readers(url: str, paths: Sequence[str]) -> tuple[Reader, ...]:
    crowd = tuple(Reader(url, path) for path in paths)
    for each in crowd:
        each.ask()
    for each in crowd:
        each.begin()
    return crowd


def readers_of_all(url: str) -> Attack:
    """Many read a part of a deep history at the same time."""
    _keep(url, "/read", _QUEUE)
    return _crowd_of(url, "asking", _ASKING // 10, "/streams/read")


def _keep(url: str, channel: str, count: int) -> None:
    """Publish this number of messages to a channel that keeps them."""
    publisher = Client(url)
    topic = {"destroyDelay": -1, "history": {"maxEntries": _QUEUE}}
    for at in range(0, count, 250):
        some = range(min(250, count - at))
        publisher.say(*[publish(channel, ext={"delivery": {"topic": topic}}) for _ in some])
    publisher.close()


def _topics(url: str, name: str, count: int, history: int = 0) -> None:
    """Make this number of topics; the later ones are not the last ones by name."""
    publisher = Client(url)
    topic = {"destroyDelay": -1, "history": {"maxEntries": history}}
    ext = {"delivery": {"topic": topic}}
    for at in range(0, count, 250):
        names = _topic_names(name, range(at, at + 250))
        answers = publisher.say(*(publish(each, ext=ext) for each in names))
        if not all(answer["successful"] for answer in answers):
            raise RuntimeError(f"the server refuses topics: {answers[0]}")
    publisher.close()


def _replay(start: int, *patterns: str) -> Message:
    return {**subscribe(*patterns), "ext": {"replay": start}}


def _topic_names(name: str, numbers: range) -> list[str]:
    return [f"/{name}/{n % 97}-{n}" for n in numbers]


def _of_topics(call: Message) -> Message:
    return publish("/service/topics", call)


# JSON


def _json(url: str, data: str) -> Attack:
    client = Client(url)
    body = client.body([publish("/json", "here")])
    return _again(Attack(client, body.replace(b'"here"', data.encode())))


def empty_arrays(url: str) -> Attack:
    return _json(url, _array("[]", _VALUES // 3))


def empty_objects(url: str) -> Attack:
    return _json(url, _array("{}", _VALUES // 3))


def endless_objects(url: str) -> Attack:
    return _json(url, _array("{}", _REQUEST // 3 - 200))


def small_objects(url: str) -> Attack:
    return _json(url, _array('{"a":1}', _VALUES // 4))


def deep_arrays(url: str) -> Attack:
    return _json(url, _array("[" * _DEPTH + "]" * _DEPTH, _VALUES // (2 * _DEPTH + 1)))


def deep_objects(url: str) -> Attack:
    one = '{"":' * _DEPTH + "1" + "}" * _DEPTH
    return _json(url, _array(one, _VALUES // (3 * _DEPTH + 1)))


def wide_object(url: str) -> Attack:
    return _json(url, json.dumps({str(n): n for n in range(_MEMBERS)}))


def wide_texts(url: str) -> Attack:
    """Names and strings contain commas, which do not count as values."""
    return _json(url, json.dumps({f",{n}": f"{n}," for n in range(_MEMBERS)}))


def wide_letters(url: str) -> Attack:
    """Names have characters that JSON parsers cannot process several at a time."""
    return _json(url, json.dumps({f"\U0001f600{n}": n for n in range(_MEMBERS)}))


def long_numbers(url: str) -> Attack:
    return _json(url, _array("1234567890123456789", _VALUES))


def hard_numbers(url: str) -> Attack:
    """Numbers are so near the middle between two doubles that parsing them is slow."""
    return _json(url, _array("2.4703282292062327208e-324", _VALUES))


def surrogate_escapes(url: str) -> Attack:
    """Surrogate pairs, and a lone surrogate at the end that makes the message unfit."""
    return _json(url, '"' + "\\ud83d\\ude00" * (_REQUEST // 12 - 30) + '\\ud83d"')


def surrogate_names(url: str) -> Attack:
    return _json(url, json.dumps({f"\U0001f600{n}\ud83d": n for n in range(_MEMBERS)}))


def surrogate_numbers(url: str) -> Attack:
    return _json(url, _array("2.4703282292062327208e-324", _VALUES)[:-1] + ',"\\ud83d"]')


def surrogate_batch(url: str) -> Attack:
    return _again(_attack(Client(url), *[publish("/json", "\ud83d")] * _BATCH))


def mixed_values(url: str) -> Attack:
    return _json(url, "[" + "[]," * 1_000 + "1," * (_VALUES - 3_000) + "1]")


def many_strings(url: str) -> Attack:
    return _json(url, _array('"\\\\"', _VALUES))


def records(url: str) -> Attack:
    """A table, as applications send them."""
    row = {"id": 1, "name": "Smith, Joe", "price": 1.25, "sold": True, "note": "as [is]"}
    return _json(url, _array(json.dumps(row), _VALUES // 12))


def compressed(url: str) -> Attack:
    """Eight kilobytes that inflate to eight megabytes of blanks."""
    client = Client(url)
    body = client.body([publish("/json")])
    return _again(Attack(client, gzip.compress(body[:-1] + b" " * 2 * _REQUEST + body[-1:])))


def compressed_records(url: str) -> Attack:
    attack = records(url)
    return attack._replace(body=gzip.compress(attack.body))


def _array(value: str, count: int) -> str:
    return "[" + ",".join([value] * count) + "]"


CASES: dict[str, Case] = {
    case.__name__.replace("_", "-"): case
    for case in (
        *(connects, handshakes, disconnects, disconnect_laden, expiries, takeover),
        *(
            subscribes,
            subscribes_together,
            subscribes_named,
            unsubscribes,
            deep_patterns,
            deep_publishes,
        ),
        *(holdbacks, refusals, failures, consents, deliveries, acks, repeats, pending),
        *(
            asked,
            moves,
            moves_back,
            returns,
            socket_returns,
            socket_handshakes,
            socket_upgrades,
            socket_departures,
            unknown_paths,
            unknown_operators,
            answered_by_all,
            long_digits,
            long_digits_published,
            new_heads,
            half_bodies,
            webhook_calls,
            slow_backend,
            filters,
            fanout,
            fanout_waiting,
            fanout_large,
            kept_publishes,
        ),
        *(topics_list, topics_erase, catching_up, catching_up_deep),
        *(catching_up_nested, catching_up_named, catching_up_filtered),
        *(readers_woken, readers_of_all, event_readers_woken, event_readers_of_patterns),
        *(empty_arrays, empty_objects, endless_objects, small_objects, deep_arrays, deep_objects),
        *(wide_object, wide_texts, wide_letters),
        *(long_numbers, hard_numbers, mixed_values, many_strings, records),
        *(surrogate_escapes, surrogate_names, surrogate_numbers, surrogate_batch),
        *(compressed, compressed_records),
    )
}
