"""Converts settings into the options of the server's parts."""

from holdfast.bayeux.codec import RequestLimits
from holdfast.bayeux.options import BudgetRates, ChannelRule, Durable, Options, QuotaLimits
from holdfast.delivery.channels import ChannelLimits
from holdfast.delivery.guard import GuardLimits
from holdfast.delivery.history_depth import HistoryDepth, HistoryLimits
from holdfast.delivery.queue import QueueLimits
from holdfast.delivery.shared_queues import SharedQueueLimits
from holdfast.delivery.topics import TopicConfig
from holdfast.settings import ChannelSettings, Settings
from holdfast.settings.delivery import DeliverySettings
from holdfast.settings.limits import LimitSettings, QuotaSettings
from holdfast.web.cookies import DEFAULT_NAME, BrowserCookie
from holdfast.web.endpoint import WebOptions
from holdfast.web.hosts import Hosts, name_of
from holdfast.web.origins import Origins
from holdfast.web.peers import Peers

# As an origin or a host name: all of them.
_ANY = "*"


def core_options(settings: Settings) -> Options:
    """Return the core's options, with all times in seconds."""
    return Options(
        timeout_s=settings.timeout / 1000,
        interval_s=settings.interval / 1000,
        max_interval_s=settings.max_interval / 1000,
        meta_connect_deliver_only=settings.meta_connect_deliver_only,
        handshake_reconnect=settings.handshake_reconnect,
        allow_message_delivery_during_handshake=settings.allow_message_delivery_during_handshake,
        broadcast_to_publisher=settings.broadcast_to_publisher,
        trust_client_session=settings.trust_client_session,
        max_sessions_per_browser=settings.max_sessions_per_browser,
        multi_session_interval_s=settings.multi_session_interval / 1000,
        ws_require_handshake_per_connection=settings.ws_require_handshake_per_connection,
        max_sessions=settings.max_sessions,
        max_sessions_per_subject=settings.max_sessions_per_subject,
        max_names_per_browser=settings.max_names_per_browser,
        max_names_per_address=settings.max_names_per_address,
        max_session_timeout_s=settings.max_session_timeout / 1000,
        unconnected_share=settings.unconnected_share / 100,
        ptp_create_session=settings.ptp_create_session,
        durable=Durable(settings.durable),
        max_subscriptions=settings.max_subscriptions,
        max_session_filters=settings.max_session_filters,
        max_filters=settings.max_filters,
        max_topics=settings.max_topics,
        max_outstanding=settings.max_outstanding,
        max_total_outstanding=settings.max_total_outstanding,
        reply_timeout_ms=min(settings.reply_timeout, settings.max_reply_timeout),
        max_reply_timeout_ms=settings.max_reply_timeout,
        max_total_subscriptions=settings.max_total_subscriptions,
        max_message_size=settings.max_message_size,
        handshake_rate=float(settings.handshake_rate),
        connection_types=tuple(settings.transports),
        channels={
            pattern: _rule(rule, settings.max_lazy_timeout)
            for pattern, rule in settings.channels.items()
        },
        request_limits=_request_limits(settings),
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
        guard=_guard_limits(settings),
        budgets=_budgets(settings),
        quotas=_quotas(settings),
        channel_limits=ChannelLimits(
            length=settings.max_channel_length, segments=settings.max_channel_segments
        ),
    )


def _request_limits(settings: LimitSettings) -> RequestLimits:
    return RequestLimits(
        bytes=settings.max_request_size,
        messages=settings.max_batch,
        depth=settings.max_depth,
        values=settings.max_values,
    )


def _history_limits(settings: Settings) -> HistoryLimits:
    return HistoryLimits(
        entries=settings.max_history,
        bytes=settings.max_history_bytes,
        share_entries=settings.quota_history,
        share_bytes=settings.quota_history_bytes,
    )


def _guard_limits(settings: DeliverySettings) -> GuardLimits:
    return GuardLimits(
        is_on=settings.guard,
        window_s=settings.guard_window / 1000,
        min_receivers=settings.guard_receivers,
        min_messages=settings.guard_messages,
        grace_s=settings.guard_window / 12_000,
        first_pause_s=settings.guard_retry / 1000,
    )


def _budgets(settings: QuotaSettings) -> BudgetRates:
    return BudgetRates(
        requests=settings.budget_requests,
        handshakes=settings.budget_handshakes,
        publishes=settings.budget_publishes,
        bytes=settings.budget_bytes,
        letters=settings.budget_letters,
    )


def _quotas(settings: QuotaSettings) -> QuotaLimits:
    return QuotaLimits(
        sessions=settings.quota_sessions,
        subscriptions=settings.quota_subscriptions,
        bytes=settings.quota_waiting_bytes,
        addressed=settings.quota_addressed,
        addressed_bytes=settings.quota_addressed_bytes,
        topics=settings.quota_topics,
    )


def _rule(rule: ChannelSettings, max_lazy_timeout: int) -> ChannelRule:
    lazy_timeout_s = None
    if rule.lazy or rule.lazy_timeout is not None:
        timeout = max_lazy_timeout if rule.lazy_timeout is None else rule.lazy_timeout
        lazy_timeout_s = timeout / 1000
    return ChannelRule(
        lazy_timeout_s=lazy_timeout_s,
        broadcast_to_publisher=rule.broadcast_to_publisher,
        durable=rule.durable,
        dead_letters=rule.dead_letters,
        attempts=rule.attempts,
        backoff_s=rule.backoff / 1000,
        longest_backoff_s=rule.longest_backoff / 1000,
        max_attempts=rule.max_attempts,
        history=HistoryDepth(rule.history, rule.history_bytes) if rule.history else None,
        topic=TopicConfig(rule.destroy_delay, rule.readonly) if rule.topic else None,
        is_work_queue=rule.work_queue,
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
    return WebOptions(
        paths=tuple(settings.paths),
        transports=frozenset(settings.transports),
        fast_lane=settings.fast_lane,
        max_request_size=settings.max_request_size,
        request_timeout_s=settings.request_timeout / 1000,
        write_timeout_s=settings.write_timeout / 1000,
        superseded_status=settings.duplicate_meta_connect_http_response_code,
        callback_parameter=settings.callback_parameter,
        callback_max_length=settings.callback_parameter_max_length,
        ws_messages_per_frame=settings.ws_messages_per_frame,
        ws_idle_timeout_s=settings.ws_idle_timeout / 1000,
        ws_session_timeout_s=settings.ws_session_timeout / 1000,
        ws_protocol=settings.ws_protocol,
        hsts_s=settings.hsts_s,
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
    return BrowserCookie(
        name=name,
        domain=settings.browser_cookie_domain,
        path=settings.browser_cookie_path,
        max_age=settings.browser_cookie_max_age,
        secure=secure,
        http_only=settings.browser_cookie_http_only,
        same_site=settings.browser_cookie_same_site,
        partitioned=settings.browser_cookie_partitioned,
    )
