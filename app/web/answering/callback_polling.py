"""Callback-polling (JSONP): Bayeux for pages that can only load scripts."""

import re

from aiohttp import web

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.transports import ConnectionType, SpeakerKind
from holdfast.bayeux.wire.unfit import MAX_SIZE, too_large
from holdfast.web.answering.bodies import concatenate
from holdfast.web.answering.endpoint import FIXED_HEADERS, Endpoint
from holdfast.web.answering.long_polling import exchange_over_http, refusal
from holdfast.web.http.origins import OriginTrust, only_value

_CALLBACK = re.compile(r"[A-Za-z0-9._-]+")
# The parameter that names the function, and the function's name if the parameter is missing.
_BAYEUX_PARAMETER = "jsonpcallback"
# `Sec-Fetch-Dest` of requests made by script elements or scripts. Old browsers do not send it.
_SCRIPTS = ("script", "empty", None)
# Legal in JSON strings, but not in scripts.
_LINE_ENDS = {b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029", b"</": b"<\\/"}


async def callback_poll(request: web.Request, endpoint: Endpoint) -> web.Response:
    """Handle a GET with messages in its query; the response is a script that calls a function."""
    try:
        kind = _speaker_kind(request, endpoint)
        caller = endpoint.caller(request)
        callback = _callback(request, endpoint)
        texts = request.query.getall("message", [])
        most = endpoint.options.max_request_size
        if sum(len(text) for text in texts) > most:
            raise too_large(MAX_SIZE, most)
        speaker = endpoint.speaker(request.headers, caller, kind)
        answered = await exchange_over_http(
            request, endpoint, speaker, ConnectionType.CALLBACK_POLLING, concatenate(texts)
        )
    except RequestRefused as refused:
        return refusal(request, refused, endpoint)
    answer = answered.body
    for raw, escaped in _LINE_ENDS.items():
        answer = answer.replace(raw, escaped)
    fixed = {"Content-Type": "text/javascript;charset=UTF-8", **FIXED_HEADERS}
    headers = answered.headers(endpoint, fixed)
    # The comment prevents callback names that imitate the first bytes of another file format.
    body = b"/**/" + callback.encode() + b"(" + answer + b")"
    return web.Response(status=endpoint.status(answered.exchange), body=body, headers=headers)


def _speaker_kind(request: web.Request, endpoint: Endpoint) -> SpeakerKind:
    """Return which page sent the request, if its browser shows it. Raises `RequestRefused`."""
    if ConnectionType.CALLBACK_POLLING not in endpoint.options.transports:
        raise RequestRefused(ErrorReply.TRANSPORT_UNKNOWN)
    is_known = endpoint.check_origin(request.headers) is not OriginTrust.UNKNOWN
    # Any page can contain an image or a link, so such requests do not speak for the page.
    is_script = only_value(request.headers, "Sec-Fetch-Dest") in _SCRIPTS
    return SpeakerKind.PAGE if is_known and is_script else SpeakerKind.UNKNOWN


def _callback(request: web.Request, endpoint: Endpoint) -> str:
    names = request.query.getall(endpoint.options.callback_parameter, [])
    if not names:
        names = request.query.getall(_BAYEUX_PARAMETER, [_BAYEUX_PARAMETER])
    if len(names) != 1 or len(names[0]) > endpoint.options.callback_parameter_max_length:
        raise RequestRefused(ErrorReply.CALLBACK_INVALID)
    if _CALLBACK.fullmatch(names[0]) is None:
        raise RequestRefused(ErrorReply.CALLBACK_INVALID)
    return names[0]
