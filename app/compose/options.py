"""Converts settings into the options of the server's parts."""

from dataclasses import fields
from typing import Any, TypeVar

from holdfast.bayeux.wire.codec import RequestLimits
from holdfast.bayeux.wire.options import ChannelRule, Durable, Options
from holdfast.delivery.basics.channels import ChannelLimits
from holdfast.delivery.guard.holds import GuardLimits
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.queues.queue import QueueLimits
from holdfast.delivery.routing.histories import HistoryLimits
from holdfast.delivery.shared_queues.shared_queues import SharedQueueLimits
from holdfast.delivery.topics.configured import TopicConfig
from holdfast.settings import ChannelSettings, Settings
from holdfast.settings.delivery import DeliverySettings
from holdfast.web.cookies import DEFAULT_NAME, BrowserCookie
from holdfast.web.endpoint import WebOptions
from holdfast.web.hosts import Hosts, name_of
from holdfast.web.origins import Origins
from holdfast.web.peers import Peers

# As an origin or a host name: all of them.
_ANY = "*"

Kind = TypeVar("Kind")


def core_options(settings: Settings, *, shards: int = 1) -> Options:
    """Return the core's options, of a server that is one of so many shards."""
    return _taken(
        Options,
        settings,
        shards=shards,
        unconnected_share=settings.unconnected_share / 100,
        durable=Durable(settings.durable),
        reply_timeout_ms=min(settings.reply_timeout, settings.max_reply_timeout),
        max_reply_timeout_ms=settings.max_reply_timeout,
        handshake_rate=float(settings.handshake_rate),
        connection_types=tuple(settings.transports),
        channels={
            pattern: _rule(rule, settings.max_lazy_timeout)
            for pattern, rule in settings.channels.items()
        },
        request_limits=_taken(
            RequestLimits,
            settings,
            prefix="max_",
            bytes=settings.max_request_size,
            messages=settings.max_batch,
        ),
        queue_limits=QueueLimits(entries=settings.max_queue, bytes=settings.max_queue_bytes),
        history_limits=_history_limits(settings),
        subject_limits=SharedQueueLimits(
            entries=settings.max_subject_queue,
            bytes=settings.max_subject_queue_bytes,
            queues=settings.max_subject_queues,
        ),
        work_limits=SharedQueueLimits(
            entries=settings.max_work_queue,
            bytes=settings.max_work_queue_bytes,
            queues=settings.max_work_queues,
        ),
        delay_limits=SharedQueueLimits(
            entries=settings.max_delayed, bytes=settings.max_delayed_bytes
        ),
        max_delay_ms=settings.max_delay,
        guard=_guard_limits(settings),
        quotas=settings,
        channel_limits=_taken(ChannelLimits, settings, prefix="max_channel_"),
    )


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


def _history_limits(settings: Settings) -> HistoryLimits:
    return HistoryLimits(
        entries=settings.max_history,
        bytes=settings.max_history_bytes,
        share_entries=settings.quota_history,
        share_bytes=settings.quota_history_bytes,
    )


def _guard_limits(settings: DeliverySettings) -> GuardLimits:
    return GuardLimits(
        window_s=settings.guard_window / 1000,
        min_receivers=settings.guard_receivers,
        min_messages=settings.guard_messages,
        grace_s=settings.guard_window / 12_000,
        first_pause_s=settings.guard_retry / 1000,
    )


def _rule(rule: ChannelSettings, max_lazy_timeout: int) -> ChannelRule:
    lazy_timeout_s = None
    if rule.lazy or rule.lazy_timeout is not None:
        timeout = max_lazy_timeout if rule.lazy_timeout is None else rule.lazy_timeout
        lazy_timeout_s = timeout / 1000
    return _taken(
        ChannelRule,
        rule,
        lazy_timeout_s=lazy_timeout_s,
        history=HistoryDepth(rule.history, rule.history_bytes) if rule.history else None,
        topic=TopicConfig(rule.destroy_delay, rule.readonly) if rule.topic else None,
        is_work_queue=rule.work_queue,
        is_guarded=rule.guard,
        has_presence=rule.presence,
    )


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
