"""Callback-polling (JSONP): Bayeux for pages that can only load scripts."""

import re

from aiohttp import web

from app.bayeux.errors import BayeuxError, RequestRefused
from app.bayeux.exchange import ConnectionType, Source
from app.web.bodies import concatenate
from app.web.endpoint import FIXED_HEADERS, Endpoint
from app.web.long_polling import exchange_over_http, refusal
from app.web.origins import Standing, said

_CALLBACK = re.compile(r"[A-Za-z0-9._-]+")
# Bayeux's name of the parameter, and what the function is called if none is named.
_BAYEUX_PARAMETER = "jsonpcallback"
# What loads callbacks: a script element, or a script itself. Old browsers do not say.
_SCRIPTS = ("script", "empty", None)
# Legal in JSON, line ends in scripts.
_LINE_ENDS = {b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029", b"</": b"<\\/"}


async def callback_poll(request: web.Request, endpoint: Endpoint) -> web.Response:
    """A GET with messages in its query; the answer is a script that calls a function."""
    try:
        source = _source(request, endpoint)
        caller = endpoint.caller(request)
        callback = _callback(request, endpoint)
        texts = request.query.getall("message", [])
        if sum(len(text) for text in texts) > endpoint.options.max_request_size:
            raise RequestRefused(BayeuxError.REQUEST_TOO_LARGE)
        exchange, answer = await exchange_over_http(
            request, endpoint, caller, ConnectionType.CALLBACK_POLLING, concatenate(texts), source
        )
    except RequestRefused as refused:
        return refusal(request, refused.error, endpoint, refused.wait_s)
    for raw, escaped in _LINE_ENDS.items():
        answer = answer.replace(raw, escaped)
    headers = {
        "Content-Type": "text/javascript;charset=UTF-8",
        **FIXED_HEADERS,
        **endpoint.headers(exchange, None, None),
    }
    # The comment keeps the callback's name from being the first bytes of some other file format.
    body = b"/**/" + callback.encode() + b"([" + answer + b"])"
    return web.Response(status=endpoint.status(exchange), body=body, headers=headers)


def _source(request: web.Request, endpoint: Endpoint) -> Source:
    """Which page sent the request, as far as its browser says; raises `RequestRefused`."""
    if ConnectionType.CALLBACK_POLLING.value not in endpoint.options.transports:
        raise RequestRefused(BayeuxError.TRANSPORT_UNKNOWN)
    is_known = endpoint.check_origin(request.headers) is not Standing.UNKNOWN
    # Whoever may put a picture or a link into a page speaks for that page no more than a mail does.
    is_script = said(request.headers, "Sec-Fetch-Dest") in _SCRIPTS
    return Source.PAGE if is_known and is_script else Source.UNKNOWN


def _callback(request: web.Request, endpoint: Endpoint) -> str:
    names = request.query.getall(endpoint.options.callback_parameter, [])
    if not names:
        names = request.query.getall(_BAYEUX_PARAMETER, [_BAYEUX_PARAMETER])
    if len(names) != 1 or len(names[0]) > endpoint.options.callback_max_length:
        raise RequestRefused(BayeuxError.CALLBACK_INVALID)
    if _CALLBACK.fullmatch(names[0]) is None:
        raise RequestRefused(BayeuxError.CALLBACK_INVALID)
    return names[0]
