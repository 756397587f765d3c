"""Converts settings into the options of the server's parts."""

from dataclasses import fields
from typing import Any, TypeVar

from holdfast.settings import Settings
from holdfast.web.cookies import DEFAULT_NAME, BrowserCookie
from holdfast.web.endpoint import WebOptions
from holdfast.web.hosts import Hosts, name_of
from holdfast.web.origins import Origins
from holdfast.web.peers import Peers

# As an origin or a host name: all of them.
_ANY = "*"

Kind = TypeVar("Kind")


def _taken(kind: type[Kind], settings: object, *, prefix: str = "", **others: Any) -> Kind:  # noqa: ANN401 - any field
    """Return options of this kind.

    A field that the others do not name is the setting of its name. Times are milliseconds in
    settings; in options they are seconds, with `_s` behind their names.
    """
    names = [each.name for each in fields(kind) if each.init and each.name not in others]  # type: ignore[arg-type]
    return kind(**{name: _value(settings, prefix + name) for name in names}, **others)


def _value(settings: object, name: str) -> Any:  # noqa: ANN401 - whatever is a setting
    if name.endswith("_s") and not hasattr(settings, name):
        return getattr(settings, name.removesuffix("_s")) / 1000
    return getattr(settings, name)


def hosts_of(settings: Settings) -> Hosts:
    """The host names by which this server is reached over a network."""
    admin, _, _ = (settings.admin or "").rpartition(":")
    places = [settings.host, admin, *settings.allow_origin]
    names = [name for place in places if place not in ("", _ANY) and (name := name_of(place))]
    return Hosts([*settings.host_name, *names])


def _main_hosts(settings: Settings) -> Hosts:
    """Return all hosts for a Unix socket, unless names are set: its proxy checks names."""
    if settings.unix is not None and not settings.host_name:
        return Hosts([_ANY])
    return hosts_of(settings)


def web_options(settings: Settings) -> WebOptions:
    return _taken(
        WebOptions,
        settings,
        paths=tuple(settings.paths),
        transports=frozenset(settings.transports),
        superseded_status=settings.duplicate_meta_connect_http_response_code,
        callback_max_length=settings.callback_parameter_max_length,
        cookie=browser_cookie(settings),
        origins=Origins(tuple(settings.allow_origin)),
        hosts=_main_hosts(settings),
        peers=Peers(
            tuple(settings.trusted_proxies),
            settings.forwarded_header,
            shows_headers=bool(settings.extension) or settings.requires_login,
        ),
    )


def browser_cookie(settings: Settings) -> BrowserCookie:
    secure, name = settings.is_cookie_secure, settings.browser_cookie_name
    if name is None:
        # Browsers accept such a name only from this host over TLS.
        prefix = "__Host-" if secure and settings.is_cookie_of_host else ""
        name = prefix + DEFAULT_NAME
    return _taken(BrowserCookie, settings, prefix="browser_cookie_", name=name, secure=secure)
