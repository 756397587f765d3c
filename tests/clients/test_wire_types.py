"""`static/js/wire.d.ts` describes what is on the wire: all of it, and nothing else.

Clients talk with a real server. What they said must compile as the types say, and must not compile
when any value is replaced by one of another kind. No type has a member that nobody has sent.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.node_client import MODULES, require
from tests.clients.talking import SETTINGS, Message, Talk, greeted
from tests.clients.test_extensions import SCRIPTS
from tests.serving import Servers
from tests.unit.login.signing import SECRET

WIRE = SCRIPTS / "wire.d.ts"
META = {
    "/meta/handshake": "Handshake",
    "/meta/connect": "Connect",
    "/meta/subscribe": "Subscribe",
    "/meta/unsubscribe": "Unsubscribe",
    "/meta/disconnect": "Disconnect",
}
ANSWERS = {
    "/meta/handshake": "HandshakeAccepted",
    "/meta/connect": "ConnectAccepted",
    "/meta/subscribe": "SubscribeAccepted",
    "/meta/unsubscribe": "SubscribeAccepted",
    "/meta/disconnect": "DisconnectAccepted",
}
CALLS = {"/service/ptp": "Publish<PtpCall>", "/service/delivery": "Publish<DeliveryCall>"}
DATA = {"/sys/deadMessage": "EventMessage<DeadLetter>"}
# What applications choose themselves: any value will do.
FREE = {"properties", "own", "content"}
ANY_DATA = {"Publish.data", "EventMessage.data", "ServiceAnswer.data"}
GREETING = {
    "extension": ["tests.conversations.policies:welcome"],
    "allow_message_delivery_during_handshake": True,
}
CREDENTIALS = {"user": "ada", "password": "ada's"}
HANDSHAKE = {"channel": "/meta/handshake", "version": "1.0", "supportedConnectionTypes": []}
LOGIN = {**HANDSHAKE, "minimumVersion": "1.0", "ext": {"authentication": CREDENTIALS}}
WRONG = (
    ("Connect", {"channel": "/meta/connect"}),
    ("Handshake", {**HANDSHAKE, "ext": {"delivery": {"sesion": "joe/1"}}}),
    ("Publish", {"channel": "/a", "data": 1, "ext": {"delivery": {"priorty": 9}}}),
    ("Publish", {"channel": "/a"}),
    ("Verdict", {"seq": 1}),
    ("Verdict", {"seq": 1, "state": "OK", "errorCode": "user.update.error"}),
    ("Verdict", {"seq": 1, "errorCode": "resource.full"}),
    ("Refused", {"channel": "/a", "successful": False, "error": "no"}),
    ("Subscribe", {"channel": "/meta/subscribe", "subscription": "/a", "ext": {"replay": []}}),
)

COMPILER_OPTIONS = {
    "strict": True,
    "noEmit": True,
    "target": "es2022",
    "module": "preserve",
    "lib": ["es2022"],
    "types": [],
    "skipDefaultLibCheck": True,
}


@pytest.fixture(scope="module")
def typed(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Message]]:
    """Each message and its type, with one message of each form."""
    talk = Talk(servers.with_settings(SETTINGS))
    talk.run()
    key = tmp_path_factory.mktemp("login") / "key"
    key.write_bytes(SECRET)
    talk.heard.extend(greeted(servers.with_settings({**GREETING, "login_keys": str(key)})))
    sent = [(sent_type(message), message) for message in [*talk.sent, LOGIN]]
    heard = [(heard_type(message), message) for message in talk.heard]
    by_form = {f"{kind} {form_of(message)}": (kind, message) for kind, message in sent + heard}
    return list(by_form.values())


def sent_type(message: Message) -> str:
    return META.get(message["channel"]) or CALLS.get(message["channel"], "Publish")


def heard_type(message: Message) -> str:
    channel = message["channel"]
    if "data" not in message:
        return ANSWERS.get(channel, "PublishAccepted") if message["successful"] else "Refused"
    if "successful" in message:
        return "ServiceAnswer"
    if "error" in message:
        return "RequestFailed"
    if message.get("ext", {}).get("status") == "END":
        return "RequestEnd"
    return DATA.get(channel, "EventMessage")


def form_of(value: object) -> object:
    """What a message has, without the values."""
    if isinstance(value, dict):
        return {name: form_of(part) for name, part in value.items()}
    if isinstance(value, list):
        return [form_of(part) for part in value]
    return type(value).__name__


def spoilt(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Where a part is replaced by another kind, and the whole with it, for each part."""
    parts: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        parts = [item for item in value.items() if f"{path}.{item[0]}" not in ANY_DATA]
    elif isinstance(value, list):
        parts = list(enumerate(value))
    for name, part in parts:
        if name in FREE:
            continue
        for place, bad in spoilt(
            part, f"{path}[]" if isinstance(value, list) else f"{path}.{name}"
        ):
            whole = value.copy()
            whole[name] = bad
            yield place, whole
    yield path, [[]] if isinstance(value, dict) else {"spoilt": []}


def constant(number: int, kind: str, message: Any) -> str:
    return f"export const m{number}: {kind} = {json.dumps(message)};"


def compile_all(lines: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    compiler = MODULES / ".bin" / "tsc"
    require(compiler.exists(), "tests/clients/node_modules/.bin/tsc (make setup-clients)")
    names = sorted(re.findall(r"^export (?:interface|type) (\w+)", WIRE.read_text(), re.M))
    head = f'import type {{{", ".join(names)}}} from "{WIRE.with_suffix("").with_suffix(".js")}";'
    (home / "said.ts").write_text("\n".join([head, *lines, ""]))
    config = {"compilerOptions": COMPILER_OPTIONS, "files": ["said.ts"]}
    (home / "tsconfig.json").write_text(json.dumps(config))
    command = [str(compiler), "--project", str(home)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_what_is_said_compiles_and_what_is_spoilt_does_not(
    typed: list[tuple[str, Message]], tmp_path: Path
) -> None:
    lines, places = list[str](), set[str]()
    for kind, message in typed:
        lines.append(constant(len(lines), kind, message))
        for place, bad in spoilt(message, kind):
            if place not in places:
                places.add(place)
                lines.append(f"// @ts-expect-error: {place}")
                lines.append(constant(len(lines), kind, bad))
    for kind, message in WRONG:
        lines.append("// @ts-expect-error: not on the wire")
        lines.append(constant(len(lines), kind, message))
    run = compile_all(lines, tmp_path)
    assert run.returncode == 0, described(run.stdout, lines)


def described(complaints: str, lines: list[str]) -> str:
    """The first complaints, each with its line."""
    found = re.findall(r"^said\.ts\((\d+),.*|^.*said\.ts\((\d+),.*", complaints, re.M)
    numbers = [int(first or second) for first, second in found[:10]]
    return "\n".join(
        [complaints[:2000], *(" ".join(lines[number - 2 : number])[:1500] for number in numbers)]
    )


def test_no_member_is_declared_that_nobody_has_sent(typed: list[tuple[str, Message]]) -> None:
    declared = set(re.findall(r'(?:^ +|[{;,] ?)"?([\w-]+)"?\??: ', code_of_types(), re.M))
    said = set(re.findall(r'"([\w-]+)": ', json.dumps([message for _, message in typed])))
    assert "rcvTimestamp" in declared
    assert declared - said == set()


def code_of_types() -> str:
    return re.sub(r"/\*\*.*?\*/|//[^\n]*", "", WIRE.read_text(), flags=re.S)
