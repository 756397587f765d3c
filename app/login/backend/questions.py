"""What the application is asked, and how its answers are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from math import inf
from typing import Annotated, Any, Final, Protocol, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from holdfast.bayeux.state.backend_figures import Action
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.login import Login, LoginMethod, Right
from holdfast.bayeux.wire.operation import Operation
from holdfast.bayeux.wire.terms import is_subject
from holdfast.login.failures import SaysNo, Unusable
from holdfast.login.rights_file import read_claim
from holdfast.settings.login import BackendSettings

# How much of an answer is read, in bytes: more than the rights of one client need.
MOST_READ: Final = 65_536
# Of a text that a client gets to see.
_LONGEST_TEXT: Final = 200
_MOST_GROUPS: Final = 1000
# How long something may be valid, in seconds: a year.
_LONGEST_S: Final = 365 * 24 * 3600.0
_REFUSALS: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_REDIRECTS: Final = range(300, 400)
# Allows nothing: an empty list of rights is no missing one.
_NO_RIGHT: Final = Right(frozenset(Operation), ("/**",), denies=True)

_Seconds = Annotated[float, Field(ge=1, le=_LONGEST_S, allow_inf_nan=False)]


class Reply(Protocol):
    """An answer of HTTP."""

    @property
    def status(self) -> int: ...

    @property
    def body(self) -> bytes: ...

    @property
    def is_whole(self) -> bool: ...


class Unclear(Exception):
    """An answer means nothing. The text says why, for operators."""


class _Answer(BaseModel):
    # A misspelt restriction must not be overlooked.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    detail: object = None
    expires_in: _Seconds | None = None


_Form = TypeVar("_Form", bound=_Answer)


class _AboutClient(_Answer):
    subject: str | None = None
    groups: Annotated[list[str], Field(max_length=_MOST_GROUPS)] = []
    rights: list[Any] | None = None
    allow: StrictBool = True


class _AboutChannel(_Answer):
    allow: StrictBool


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the application."""

    action: Action
    # Both have secrets of the client, so they are never printed.
    body: bytes = field(repr=False)
    # The headers of the client's request that the application gets to see.
    headers: Mapping[str, str] = field(repr=False)
    # The key of limits for its address; empty if it has none.
    network: str = ""


def shown_by(caller: Caller, settings: BackendSettings) -> dict[str, str]:
    """Return what a request has of the headers and cookies that the application gets to see.

    A cookie may come twice, because other hosts of a domain can set it: all of them are passed on,
    in their order. Values that HTTP cannot have are left out.
    """
    shown: dict[str, str] = {}
    names = {name.lower(): name for name in settings.headers}
    for name, value in caller.headers.items():
        known = names.get(name.lower())
        if known is not None and _is_sendable(value):
            # One that comes twice is passed on as one, as HTTP allows.
            shown[known] = f"{shown[known]}, {value}" if known in shown else value
    pairs = [
        f"{name}={value}"
        for name in settings.cookies
        for value in caller.cookies(name)
        if _is_sendable(value)
    ]
    if pairs:
        shown["Cookie"] = "; ".join(pairs)
    return shown


def _is_sendable(value: str) -> bool:
    """Return whether a value can be a part of a header of ours."""
    return value.isascii() and value.isprintable()


def question(
    action: Action, caller: Caller, headers: Mapping[str, str], **about: object
) -> Question:
    """Return a question about the client of a request."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    known = {name: value for name, value in about.items() if value is not None}
    body = {"type": action.value, "timestamp": at, "data": {"address": caller.address, **known}}
    return Question(action, orjson.dumps(body), headers, caller.network)


def login_in(reply: Reply, now_s: float) -> Login:
    """Return the login that an answer gives. Raises `SaysNo` or `Unclear`."""
    said = _read(reply, _AboutClient)
    if not said.allow:
        raise SaysNo(text_of(said.detail))
    if not is_subject(said.subject):
        raise Unclear("the subject has not 2 to 63 letters, digits or . @ + ~ -")
    rights: tuple[Right, ...] = ()
    if said.rights is not None:
        try:
            rights = read_claim(said.rights) or (_NO_RIGHT,)
        except Unusable as unusable:
            raise Unclear(f"rights: {unusable}") from None
    return Login(
        subject=str(said.subject),
        method=LoginMethod.BACKEND,
        groups=frozenset(filter(None, said.groups)),
        expires_s=inf if said.expires_in is None else now_s + said.expires_in,
        issued_s=now_s,
        rights=rights,
    )


def permission_in(reply: Reply) -> float | None:
    """Return for how many seconds an answer allows what was asked; None if it does not say.

    Raises `SaysNo` or `Unclear`.
    """
    said = _read(reply, _AboutChannel)
    if not said.allow:
        raise SaysNo(text_of(said.detail))
    return said.expires_in


def _read(reply: Reply, form: type[_Form]) -> _Form:
    status = reply.status
    if status in _REFUSALS:
        raise SaysNo(_detail_in(reply.body))
    if status in _REDIRECTS:
        raise Unclear(f"status {status}: it redirects, and should answer 401 or 403 instead")
    if status != HTTPStatus.OK:
        raise Unclear(f"status {status}")
    if not reply.is_whole:
        raise Unclear(f"the answer is longer than {MOST_READ} bytes, or breaks off")
    try:
        said = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        raise Unclear("the answer is not JSON") from None
    try:
        return form.model_validate(said)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise Unclear(f"{place}: {fault['msg']}" if place else fault["msg"]) from None


def _detail_in(body: bytes) -> str:
    """Return the text of a refusal; frameworks answer with it as `detail`."""
    try:
        said: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    return text_of(said.get("detail")) if isinstance(said, dict) else ""


def text_of(given: object) -> str:
    """Return a text that clients and operators may be shown; empty if it is none."""
    if not isinstance(given, str):
        return ""
    printable = "".join(each if each.isprintable() else " " for each in given[:_LONGEST_TEXT])
    return " ".join(printable.split())
