"""docs/reference/requests.md shows the messages on the wire, and the names of xMsg, as they are."""

import json

from tests.pages import ROOT, blocks
from tests.unit.bayeux.harness import Client, Json, Server
from tests.unit.extensions.requesting import POWER, requesting

BLOCKS = blocks(ROOT / "docs" / "reference" / "requests.md")
RET = "/ret/4174kQx1nXyQ0uQmT7p2v3hZAgecr"
# Stands for a value that is different each time.
ANY = "…"
TURN_S = 0.13


def shown(own: str = RET) -> list[Json]:
    """The messages of the page, with the channel of this client."""
    texts = [block.text for block in BLOCKS if block.language == "json"]
    decoder, messages = json.JSONDecoder(), []
    for text in texts:
        rest = text.replace(RET, own).lstrip()
        while rest:
            message, end = decoder.raw_decode(rest)
            messages.append(message)
            rest = rest[end:].lstrip()
    return messages


def say(client: Client, message: Json) -> Json:
    """Send a message of the page; return the reply."""
    own = {"clientId": client.client_id} if "clientId" in message else {}
    (reply,) = client.send({**message, **own}).elements
    return reply


def come(server: Server) -> tuple[Client, list[Json]]:
    """A client after the handshake of the page, and the page's other messages for it."""
    client = server.guest()
    asked, told, *_ = shown()
    reply = say(client, asked)
    client.client_id = reply["clientId"]
    assert (told["channel"], told["successful"]) == (reply["channel"], reply["successful"])
    assert told["clientId"] == ANY
    assert told["ext"].keys() == reply["ext"].keys()
    assert len(reply["ext"]["ret"]) == len(RET)
    return client, shown(reply["ext"]["ret"])[2:]


def test_a_request_and_its_reply_travel_as_the_page_shows_them() -> None:
    server = requesting()
    ann, (asked, event, answer, *_) = come(server)
    bob = server.client()
    bob.subscribe(POWER)
    assert say(ann, asked)["successful"]
    server.now += TURN_S
    assert bob.connect(advice={"timeout": 0}).events == [event]
    assert say(bob, answer)["successful"]
    (heard,) = ann.connect(advice={"timeout": 0}).events
    assert heard == {key: answer[key] for key in ("channel", "data")}


def test_an_error_travels_as_the_page_shows_it_whoever_listens_as_it_says() -> None:
    server = requesting()
    ann, (asked, _, _, error, listening) = come(server)
    assert say(server.client(), listening)["successful"]
    assert say(ann, asked)["successful"]
    server.turn()
    assert ann.connect(advice={"timeout": 0}).events == [error]


def test_the_names_of_xmsg_are_those_of_the_page() -> None:
    [code] = [block.text for block in BLOCKS if block.kind == "assertions"]
    exec(compile(code, "docs/reference/requests.md", "exec"), {})
