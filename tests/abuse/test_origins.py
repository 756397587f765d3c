"""Attacks of pages of other sites: by script, form, script tag or socket."""

import orjson
import pytest

from tests.abuse.attacker import CLOSE, HANDSHAKE, Answer, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target

HELLO = orjson.dumps([HANDSHAKE])
HOST = "holdfast.localhost"
DENIED = (403, "403:allow_origin:origin_denied")
FRIEND = "https://friend.example"

FOREIGN = [
    "null",
    "http://evil.test",
    "https://friend.example.evil.test",
    "https://evilfriend.example",
    "https://friend.example:8443",
    "http://friend.example",
    "https://friend.example@evil.test",
    f"http://{HOST}.evil.test",
    f"http://{HOST}:81",
    f"http://sub.{HOST}",
    f"http://{HOST}/",
    "file://",
    "",
]
OWN = [f"http://{HOST}", f"HTTP://{HOST.upper()}", f"http://{HOST}:80", f"https://{HOST}:443"]
FORMS = {
    "text/plain": HELLO,
    "application/x-www-form-urlencoded": b"message=" + HELLO,
    "multipart/form-data; boundary=x": b'--x\r\nContent-Disposition: form-data; name="message"'
    b"\r\n\r\n" + HELLO + b"\r\n--x--\r\n",
}
CORS = "access-control-"


@pytest.fixture(params=[True, False], ids=["fast lane", "ordinary front end"])
def with_a_friend(target_with: MakeTarget, request: pytest.FixtureRequest) -> Target:
    transports = ["websocket", "long-polling", "callback-polling"]
    return target_with(allow_origin=[FRIEND], fast_lane=request.param, transports=transports)


def ask(target: Target, data: bytes) -> Answer:
    with target.wire() as wire:
        wire.send(data)
        return wire.answer()


def is_silent(answer: Answer) -> bool:
    """Whether a browser would show the answer to no other page, and it sets no cookie."""
    return not any(name.startswith(CORS) or name == "set-cookie" for name in answer.headers)


def created(target: Target) -> float:
    return target.metric("holdfast_sessions_created_total")


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_post_of_a_foreign_page_has_no_effect(origin: str, with_a_friend: Target) -> None:
    before = created(with_a_friend)
    answer = ask(with_a_friend, request(HELLO, {"Origin": origin}))
    assert (answer.status, answer.error()) == DENIED
    assert is_silent(answer)
    assert answer.headers["vary"] == "Origin"
    assert created(with_a_friend) == before


OWN_PAGE, EVIL = f"http://{HOST}", "http://evil.test"
# Two header lines of one name need two spellings of it here.
SEVERAL_ORIGINS = [
    {"Origin": OWN_PAGE, "origin": EVIL},
    {"Origin": EVIL, "origin": OWN_PAGE},
    {"Origin": FRIEND, "origin": EVIL},
    {"Origin": OWN_PAGE, "origin": FRIEND},
    {"Origin": OWN_PAGE, "origin": OWN_PAGE},
    {"Origin": f"{OWN_PAGE}, {EVIL}"},
    {"Origin": f"{OWN_PAGE},{EVIL}"},
    {"Origin": f"{OWN_PAGE} {EVIL}"},
    {"Origin": f"{FRIEND} {EVIL}"},
]
# Browsers that send no `Origin` with a form say one of these, if they are not very old.
FOREIGN_WITHOUT_ORIGIN = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "nonsense"},
    {"Sec-Fetch-Site": "same-origin", "sec-fetch-site": "cross-site"},
    {"Sec-Fetch-Site": "cross-site", "Referer": ""},
    {"Sec-Fetch-Site": "cross-site", "Referer": f"{EVIL}/page"},
    {"Referer": f"{EVIL}/page"},
    {"Referer": f"{EVIL}/{OWN_PAGE}/"},
    {"Referer": f"{OWN_PAGE}@evil.test/"},
    {"Referer": f"{OWN_PAGE}/", "referer": f"{EVIL}/"},
    {"Referer": "about:blank"},
]


@pytest.mark.parametrize("headers", [*SEVERAL_ORIGINS, *FOREIGN_WITHOUT_ORIGIN])
@pytest.mark.parametrize("content_type", ["application/json", *FORMS])
def test_a_post_that_any_foreign_page_may_have_sent_has_no_effect(
    content_type: str, headers: dict[str, str], with_a_friend: Target
) -> None:
    before = created(with_a_friend)
    said = {"Content-Type": content_type, "Cookie": "BAYEUX_BROWSER=x", **headers}
    answer = ask(with_a_friend, request(FORMS.get(content_type, HELLO), said))
    assert (answer.status, answer.error()) == DENIED
    assert is_silent(answer)
    assert created(with_a_friend) == before


@pytest.mark.parametrize("headers", [*SEVERAL_ORIGINS, *FOREIGN_WITHOUT_ORIGIN])
def test_a_socket_that_any_foreign_page_may_have_opened_is_refused(
    headers: dict[str, str], with_a_friend: Target
) -> None:
    with with_a_friend.socket(Host=HOST, **headers) as socket:
        assert (socket.upgrade.status, socket.upgrade.error()) == DENIED
        assert is_silent(socket.upgrade)


@pytest.mark.parametrize("headers", SEVERAL_ORIGINS)
def test_a_preflight_of_several_origins_permits_nothing(
    headers: dict[str, str], with_a_friend: Target
) -> None:
    asked = {**headers, "Access-Control-Request-Method": "POST"}
    assert is_silent(ask(with_a_friend, request(b"", asked, method="OPTIONS /cometd")))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-site", "Referer": f"{OWN_PAGE}/x"},
        {"Sec-Fetch-Site": "cross-site", "Referer": f"{FRIEND}/x"},
        {"Referer": f"{OWN_PAGE}/chat?x=1"},
        {"Referer": FRIEND},
        {"Referer": ""},
    ],
)
def test_a_post_without_an_origin_is_served_if_nothing_says_that_its_page_is_foreign(
    headers: dict[str, str], with_a_friend: Target
) -> None:
    assert ask(with_a_friend, request(HELLO, headers)).messages()[0]["successful"]


@pytest.mark.parametrize("content_type", FORMS)
def test_a_form_of_a_foreign_page_has_no_effect(content_type: str, with_a_friend: Target) -> None:
    before = created(with_a_friend)
    for origin in ("http://evil.test", "null"):
        headers = {"Content-Type": content_type, "Origin": origin, "Cookie": "BAYEUX_BROWSER=x"}
        answer = ask(with_a_friend, request(FORMS[content_type], headers))
        assert (answer.status, answer.error()) == DENIED
    assert created(with_a_friend) == before


def test_multipart_forms_are_never_accepted(target: Target) -> None:
    (content_type,) = (each for each in FORMS if "multipart" in each)
    answer = ask(target, request(FORMS[content_type], {"Content-Type": content_type}))
    assert (answer.status, answer.error()) == (415, "415::media_type_unsupported")


@pytest.mark.parametrize("origin", OWN)
def test_pages_of_the_own_origin_are_served(origin: str, with_a_friend: Target) -> None:
    answer = ask(with_a_friend, request(HELLO, {"Origin": origin}))
    assert answer.messages()[0]["successful"]
    assert not any(name.startswith(CORS) for name in answer.headers)


def test_only_allowed_origins_are_named_in_cors_headers(with_a_friend: Target) -> None:
    answer = ask(with_a_friend, request(HELLO, {"Origin": FRIEND}))
    assert answer.messages()[0]["successful"]
    assert answer.headers["access-control-allow-origin"] == FRIEND
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert answer.headers["vary"] == "Origin"


def test_allowing_every_origin_grants_no_credentials(target_with: MakeTarget) -> None:
    target = target_with(allow_origin=["*"])
    for origin in ("http://evil.test", "null"):
        answer = ask(target, request(HELLO, {"Origin": origin}))
        assert answer.messages()[0]["successful"]
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_preflight_of_a_foreign_page_permits_nothing(origin: str, with_a_friend: Target) -> None:
    headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    answer = ask(with_a_friend, request(b"", headers, method="OPTIONS /cometd"))
    assert is_silent(answer)


@pytest.mark.parametrize("origin", FOREIGN)
def test_a_socket_of_a_foreign_page_is_refused(origin: str, with_a_friend: Target) -> None:
    with with_a_friend.socket(Host=HOST, Origin=origin) as socket:
        assert (socket.upgrade.status, socket.upgrade.error()) == DENIED
        assert is_silent(socket.upgrade)


@pytest.mark.parametrize("origin", [*OWN, FRIEND, None])
def test_a_socket_of_an_own_or_allowed_page_or_of_a_program_is_opened(
    origin: str | None, with_a_friend: Target
) -> None:
    headers = {"Host": HOST} if origin is None else {"Host": HOST, "Origin": origin}
    with with_a_friend.socket(**headers) as socket:
        assert socket.upgrade.status == 101
        socket.send_frame(b"", CLOSE)


SCRIPT = "GET /cometd?jsonp=f&message=" + HELLO.decode().replace('"', "%22").replace(" ", "")
SITES = [
    ({}, False),
    ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "none"}, False),
    ({"Sec-Fetch-Site": "cross-site"}, False),
    ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Sec-Fetch-Site": "nonsense"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Referer": f"{FRIEND}/chat?x=1"}, True),
    ({"Sec-Fetch-Site": "cross-site", "Referer": FRIEND}, True),
    ({"Sec-Fetch-Site": "same-site", "Referer": f"http://{HOST}/x"}, True),
    ({"Sec-Fetch-Site": "cross-site", "Referer": f"http://evil.test/{FRIEND}"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Referer": f"{FRIEND}.evil.test/"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Referer": f"{FRIEND}@evil.test/"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Referer": "null"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Referer": ""}, False),
    ({"Sec-Fetch-Site": "cross-site", "Referer": "////"}, False),
    # What browsers send over plain HTTP.
    ({"Referer": f"http://{HOST}/chat?x=1"}, True),
    ({"Referer": f"{FRIEND}/chat"}, True),
    ({"Referer": "http://evil.test/"}, False),
    ({"Referer": f"http://evil.test/{FRIEND}"}, False),
    ({"Referer": "null"}, False),
    ({"Referer": ""}, False),
    ({"Origin": "null"}, False),
    ({"Origin": "http://evil.test"}, False),
    ({"Origin": "http://evil.test", "Sec-Fetch-Site": "same-origin"}, False),
    ({"Origin": FRIEND, "Sec-Fetch-Site": "cross-site"}, True),
]


@pytest.mark.parametrize(("headers", "is_served"), SITES)
def test_a_script_tag_is_served_to_own_and_allowed_pages(
    headers: dict[str, str], is_served: bool, with_a_friend: Target
) -> None:
    before = created(with_a_friend)
    answer = ask(with_a_friend, request(b"", headers, method=SCRIPT))
    if is_served:
        assert answer.body.startswith(b"/**/f([")
    else:
        # Of a page that is not shown, no setting decides.
        assert (answer.status, answer.error()) in (DENIED, (403, "403::origin_denied"))
        assert is_silent(answer)
    assert created(with_a_friend) == before + is_served


def test_pages_of_allowed_origins_can_read_refusals(with_a_friend: Target) -> None:
    answer = ask(with_a_friend, request(b"{", {"Origin": FRIEND}))
    assert (answer.status, answer.error()) == (400, "400:not JSON at byte 1:request_malformed")
    assert answer.headers["access-control-allow-origin"] == FRIEND
