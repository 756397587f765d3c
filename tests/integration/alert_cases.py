"""Data on which each alert fires, and other data on which it does not, as promtool reads them.

A series is written `name{labels}: values`, one value a minute: `0+2x60` rises by 2 sixty times.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

OF_ALL = 'job="holdfast",instance="a:80"'


class Case(NamedTuple):
    """What an alert is about.

    `labels` are those that it gives the alert, besides the job and the server.
    """

    fires: Mapping[str, str]
    is_silent: Mapping[str, str]
    after: str
    labels: str = ""


def _times(name: str, low: str, high: str, some: int, all: int, labels: str = "") -> dict[str, str]:
    """A histogram in which some of all times in a minute are up to the first bound."""
    counts = {low: some, high: all, "+Inf": all}
    return {f'{name}_bucket{{{labels}le="{le}"}}': f"0+{n}x60" for le, n in counts.items()}


_TURN, _CALL = "holdfast_turn_seconds", "holdfast_store_call_seconds"
_HAND_OVER, _PLAIN = "holdfast_hand_over_seconds", 'receiver="plain",'
_EXPIRED = 'holdfast_sessions_ended_total{reason="expire"}'
_CONNECTED = 'holdfast_sessions{state="connected"}'
_FULL = 'reason="resource.overflow.queue.entries"'
_OVER = 'code="429",reason="budget_exceeded"'
_FAULT = 'code="500",reason="server_fault"'
_ACKS = 'holdfast_ack_seconds_count{receiver="acking"}'
_CALLS, _SHOP = "holdfast_webhook_calls_total", 'webhook="shop"'
_BEHIND = 'holdfast_log_behind_seconds{shard="0",from="0",to="1"}'

CASES = {
    "HoldfastDown": Case({"up": "0x60"}, {"up": "1x60"}, "3m"),
    "HoldfastShardMissing": Case(
        {'holdfast_shard_answers{shard="1"}': "0x60", 'holdfast_shard_answers{shard="0"}': "1x60"},
        {'holdfast_shard_answers{shard="1"}': "1x60"},
        "3m",
        'shard="1"',
    ),
    "HoldfastShardRestarts": Case(
        {'holdfast_shard_restarts_total{shard="1"}': "0+1x60"},
        {'holdfast_shard_restarts_total{shard="1"}': "0x10 1x50"},
        "20m",
        'shard="1"',
    ),
    "HoldfastStoreUnavailable": Case(
        {"holdfast_store_available": "0x60"}, {"holdfast_store_available": "1x60"}, "2m"
    ),
    "HoldfastSilent": Case(
        {"holdfast_silent_seconds_total": "0+6x60"},
        {"holdfast_silent_seconds_total": "0+1x60"},
        "20m",
    ),
    "HoldfastTurnsLong": Case(
        _times(_TURN, "0.05", "0.1", 90, 100), _times(_TURN, "0.05", "0.1", 9999, 10000), "30m"
    ),
    "HoldfastHandOversSlow": Case(
        _times(_HAND_OVER, "1.0", "2.5", 90, 100, _PLAIN),
        {
            **_times(_HAND_OVER, "1.0", "2.5", 9999, 10000, _PLAIN),
            **_times(_HAND_OVER, "1.0", "2.5", 90, 100, 'receiver="durable",'),
        },
        "30m",
    ),
    "HoldfastStoreSlow": Case(
        _times(_CALL, "0.25", "0.5", 90, 100), _times(_CALL, "0.25", "0.5", 9999, 10000), "30m"
    ),
    "HoldfastQueuesFull": Case(
        {f"holdfast_entries_discarded_total{{{_FULL}}}": "0+5x60"},
        {'holdfast_entries_discarded_total{reason="session_expired"}': "0+5x60"},
        "20m",
        _FULL,
    ),
    "HoldfastAcksMissing": Case(
        {"holdfast_entries_in_flight": "3x60", _ACKS: "7x60"},
        {"holdfast_entries_in_flight": "3x60", _ACKS: "0+7x60"},
        "45m",
    ),
    "HoldfastShardBehind": Case({_BEHIND: "60x60"}, {_BEHIND: "2x60"}, "10m", 'to="1"'),
    "HoldfastBooksWrong": Case(
        {"holdfast_entries_unaccounted": "-1x60"}, {"holdfast_entries_unaccounted": "0x60"}, "10m"
    ),
    "HoldfastJournalLosesEvents": Case(
        {"holdfast_journal_events_dropped_total": "0+1x60"},
        {"holdfast_journal_events_dropped_total": "4x60"},
        "20m",
    ),
    "HoldfastLettersRemoved": Case(
        {'holdfast_dead_letters_removed_total{reason="count"}': "0+1x60"},
        {'holdfast_dead_letters_removed_total{reason="age"}': "0+1x60"},
        "20m",
        'reason="count"',
    ),
    "HoldfastServerFaults": Case(
        {f"holdfast_errors_total{{{_FAULT}}}": "0+1x60"},
        {'holdfast_errors_total{code="402",reason="session_unknown"}': "0+1x60"},
        "20m",
        _FAULT,
    ),
    "HoldfastWebhookFails": Case(
        {f'{_CALLS}{{{_SHOP},outcome="paused"}}': "0+1x60"},
        {
            f'{_CALLS}{{{_SHOP},outcome="paused"}}': "0+1x60",
            f'{_CALLS}{{{_SHOP},outcome="delivered"}}': "0+5x60",
        },
        "30m",
        _SHOP,
    ),
    "HoldfastWebhookHeld": Case(
        {f'{_CALLS}{{{_SHOP},outcome="held"}}': "0x10 1x50"},
        {f'{_CALLS}{{{_SHOP},outcome="paused"}}': "0x10 1x50"},
        "15m",
        _SHOP,
    ),
    "HoldfastSessionsExpire": Case(
        {_EXPIRED: "0+10x60", _CONNECTED: "100x60"},
        {_EXPIRED: "0+10x60", _CONNECTED: "9000x60"},
        "30m",
    ),
    "HoldfastConnectionsTurnedAway": Case(
        {'holdfast_connections_turned_away_total{listener="main"}': "0+1x60"},
        {'holdfast_connections_turned_away_total{listener="main"}': "5x60"},
        "20m",
        'listener="main"',
    ),
    "HoldfastFilesUsedUp": Case(
        {"process_open_fds": "950x60", "process_max_fds": "1000x60"},
        {"process_open_fds": "500x60", "process_max_fds": "1000x60"},
        "20m",
    ),
    "HoldfastHandshakesRefused": Case(
        {'holdfast_handshakes_refused_total{reason="lag"}': "0+1x60"},
        {'holdfast_handshakes_refused_total{reason="lag"}': "5x60"},
        "20m",
        'reason="lag"',
    ),
    "HoldfastErrorsMany": Case(
        {f"holdfast_errors_total{{{_OVER}}}": "0+600x60"},
        {f"holdfast_errors_total{{{_OVER}}}": "0+6x60"},
        "30m",
        _OVER,
    ),
    "HoldfastLoginsFail": Case(
        {'holdfast_logins_total{method="failed"}': "0+600x60"},
        {'holdfast_logins_total{method="token"}': "0+600x60"},
        "30m",
    ),
    "HoldfastAlertRaised": Case(
        {'holdfast_alert_raised{alert="oldest"}': "1x60"},
        {'holdfast_alert_raised{alert="oldest"}': "0x60"},
        "5m",
        'alert="oldest"',
    ),
}


def as_promtool_has_them(rules: Path, severities: Mapping[str, str]) -> bytes:
    """Return the file that `promtool test rules` reads; JSON is YAML."""
    tests = [test for name in CASES for test in _tests_of(name, severities[name])]
    return orjson.dumps(
        {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests},
        option=orjson.OPT_INDENT_2,
    )


def _tests_of(name: str, severity: str) -> Iterator[dict[str, Any]]:
    case = CASES[name]
    state = f'alertname="{name}",alertstate="firing"'
    labels = ",".join(filter(None, [state, OF_ALL, f'severity="{severity}"', case.labels]))
    fired = [{"labels": f"ALERTS{{{labels}}}", "value": 1}]
    for series, found in ((case.fires, fired), (case.is_silent, [])):
        yield {
            "name": f"{name} {'fires' if found else 'is silent'}",
            "interval": "1m",
            "input_series": [
                {"series": _of_server(each), "values": values} for each, values in series.items()
            ],
            "promql_expr_test": [
                {"expr": f"ALERTS{{{state}}}", "eval_time": case.after, "exp_samples": found}
            ],
        }


def _of_server(series: str) -> str:
    name, _, labels = series.partition("{")
    return f"{name}{{{OF_ALL},{labels}" if labels else f"{name}{{{OF_ALL}}}"
