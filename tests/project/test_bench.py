"""The bench judges by medians, compares with the better peer, and forgives no lost message."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from bench.bars import Bars, TimesAnother, Verdict, judge, read_bars
from bench.beside import detuned, multiplied
from bench.measure import Result, figure
from bench.pipeline.watch import run
from bench.plan import BENCH, ServerSpec, Workload, choose, read_servers, read_workloads
from bench.profile import Profile, plain, stacks
from bench.run import turns
from bench.tables import group, table
from bench.trace import listed, medians
from bench.trace import table as table_of_calls
from docs.tracing import Call, Function, Walk

_MIB = 1024 * 1024
# Three processes that have the same 64 MiB.
_SHARED = """
import os, time
held = b"x" * (64 * 1024 * 1024)
os.fork() and os.fork()
time.sleep(2.0)
"""
BARS = Bars(
    times_the_better_peer={"chat": 2.0},
    times_another={"kept": TimesAnother("chat", "deliveries_per_cpu_s", ours=0.6, peers=1.0)},
    times_silent={"chat": 0.95},
    at_most_the_better_peer={"chat": "lat_ms.p99"},
    at_most={"chat": {"bytes_per_session": 20_000}},
    at_least={"chat": {"deliveries": 100}},
    never=("lost", "duplicated"),
)
PEERS = {"faye", "cometd-node"}


def result(server: str, **figures: Any) -> Result:
    made = {"workload": "chat", "server": server, "rep": 0, "args": "chat", "scenario": "chat"}
    return made | {"lat_ms": {"p99": 5.0}, "bytes_per_session": 10_000} | figures


def verdicts(*results: Result) -> dict[str, Verdict]:
    return {each.figure: each for each in judge(results, BARS, peers=PEERS)}


def test_speed_is_compared_with_the_better_peer() -> None:
    verdict = verdicts(
        result("faye", deliveries_per_cpu_s=10),
        result("cometd-node", deliveries_per_cpu_s=20),
        result("holdfast", deliveries_per_cpu_s=40),
    )["deliveries_per_cpu_s"]
    assert verdict.peer == "cometd-node 20"
    assert verdict.ratio == 2.0
    assert verdict.met


def test_a_speed_below_the_bar_misses_it() -> None:
    ours = result("holdfast", deliveries_per_cpu_s=19)
    verdict = verdicts(result("faye", deliveries_per_cpu_s=10), ours)["deliveries_per_cpu_s"]
    assert verdict.met is False


@pytest.mark.parametrize(("ours", "met"), [(96, True), (94, False)])
def test_a_journal_may_cost_five_percent_of_the_speed(ours: int, met: bool) -> None:
    found = judge(
        [
            result("holdfast", deliveries_per_cpu_s=ours),
            result("holdfast-silent", deliveries_per_cpu_s=100),
        ],
        BARS,
        peers=PEERS,
    )
    verdict = next(each for each in found if each.peer == "holdfast-silent 100")
    assert (verdict.ratio, verdict.met) == (ours / 100, met)


def test_the_median_of_the_runs_counts() -> None:
    ours = (result("holdfast", deliveries_per_cpu_s=speed) for speed in (1, 20, 1000))
    verdict = verdicts(result("faye", deliveries_per_cpu_s=10), *ours)["deliveries_per_cpu_s"]
    assert verdict.ours == 20


def test_speed_has_no_verdict_without_a_peer() -> None:
    verdict = verdicts(result("holdfast", deliveries_per_cpu_s=40))["deliveries_per_cpu_s"]
    assert verdict.met is None


@pytest.mark.parametrize(("p99", "met"), [(4.0, True), (5.1, False)])
def test_latency_may_not_be_higher_than_that_of_the_better_peer(p99: float, *, met: bool) -> None:
    slow, quick = result("faye", lat_ms={"p99": 9.0}), result("cometd-node", lat_ms={"p99": 5.0})
    assert verdicts(slow, quick, result("holdfast", lat_ms={"p99": p99}))["lat_ms.p99"].met is met


@pytest.mark.parametrize(("size", "met"), [(20_000, True), (20_001, False)])
def test_memory_is_compared_with_an_absolute_limit(size: int, *, met: bool) -> None:
    assert verdicts(result("holdfast", bytes_per_session=size))["bytes_per_session"].met is met


@pytest.mark.parametrize(("deliveries", "met"), [(100, True), (99, False)])
def test_deliveries_are_compared_with_an_absolute_minimum(deliveries: int, *, met: bool) -> None:
    assert verdicts(result("holdfast", deliveries=deliveries))["deliveries"].met is met


@pytest.mark.parametrize(("speed", "ours", "theirs"), [(30, True, True), (19, False, False)])
def test_a_workload_may_be_compared_with_another_one_of_ours_and_of_the_better_peer(
    speed: int, *, ours: bool, theirs: bool
) -> None:
    runs = (
        result("holdfast", deliveries_per_cpu_s=40),
        result("faye", deliveries_per_cpu_s=10),
        result("cometd-node", deliveries_per_cpu_s=20),
        result("holdfast", deliveries_per_cpu_s=speed, workload="kept"),
    )
    told = [v for v in judge(runs, BARS, peers=PEERS) if v.figure.endswith("/ chat")]
    assert [(v.peer, v.met) for v in told] == [("holdfast 40", ours), ("cometd-node 20", theirs)]


def test_one_lost_message_in_one_run_is_a_fault() -> None:
    assert verdicts(result("holdfast", lost=0), result("holdfast", lost=1))["faults"].met is False


def test_messages_that_peers_lose_are_no_faults() -> None:
    assert verdicts(result("faye", lost=5), result("holdfast", lost=0))["faults"].met


def test_a_failed_run_is_a_fault_and_does_not_affect_the_median() -> None:
    found = verdicts(
        result("faye", deliveries_per_cpu_s=10),
        result("holdfast", deliveries_per_cpu_s=20),
        {"workload": "chat", "server": "holdfast", "rep": 1, "args": "", "setup_failed": True},
    )
    assert found["faults"].met is False
    assert found["deliveries_per_cpu_s"].ours == 20


def test_nested_figures_are_found() -> None:
    assert figure({"lat_ms": {"p99": 3}}, "lat_ms.p99") == 3
    assert figure({}, "lat_ms.p99") is None


def test_a_table_shows_every_server() -> None:
    results = [result("faye", lost=3), result("holdfast", deliveries_per_cpu_s=7)]
    shown = table("chat", list(group(results)["chat"].values()), markdown=True)
    assert "| faye | 0 |" in shown
    assert "| 3/0/0/0 |" in shown
    assert "| holdfast | 7 |" in shown


def test_servers_take_turns_and_skip_workloads_that_they_do_not_support() -> None:
    a, b = ServerSpec("a", (), ""), ServerSpec("b", (), "", frozenset({"ack"}))
    made = turns([Workload("w", ""), Workload("v", "", frozenset({"ack"}))], [a, b], 2)
    order = [(workload.name, server.name) for workload, _, server in made]
    assert order == [("w", "a"), ("w", "b")] * 2 + [("v", "b")] * 2


def test_an_unknown_name_stops_the_bench() -> None:
    with pytest.raises(SystemExit, match="no such server: nobody"):
        choose(read_servers(BENCH / "servers.toml"), ["nobody"])
    with pytest.raises(SystemExit, match="no such set or workload: nothing"):
        read_workloads(BENCH / "workloads.toml", "nothing")


def barred_workloads() -> Iterator[str]:
    bars = read_bars(BENCH / "bars.toml")
    yield from (*bars.times_the_better_peer, *bars.at_most_the_better_peer, *bars.at_most)


def test_every_bar_is_measured_by_the_standard_set() -> None:
    standard = {each.name for each in read_workloads(BENCH / "workloads.toml", "standard")}
    assert set(barred_workloads()) <= standard


def test_rates_are_raised_slightly_and_other_arguments_stay_the_same() -> None:
    assert detuned("chat --rate 100 --ack --rate 200") == "chat --rate 101.3 --ack --rate 202.6"
    assert detuned("pingpong --clients 1") == "pingpong --clients 1"


def test_each_of_several_workers_can_get_the_load_of_one() -> None:
    one = "chat --clients 500 --rooms 25 --publishers 32 --rate 101.3 --payload 100 --warmup 5"
    two = "chat --clients 1000 --rooms 50 --publishers 64 --rate 202.6 --payload 100 --warmup 5"
    assert multiplied(one, 2) == two
    servers = read_servers(BENCH / "servers.toml")
    assert [servers[name].workers for name in ("holdfast", "holdfast-3")] == [1, 3]


def test_memory_that_processes_share_counts_once() -> None:
    peak = run([sys.executable, "-c", _SHARED]).peak_bytes
    assert 64 * _MIB <= peak < 128 * _MIB


def walk(*functions: str) -> Walk:
    """Each function is called by the one before."""
    made = (Function("web", f"web/{name}", name) for name in functions)
    return Walk([Call(each, number - 1 if number else None) for number, each in enumerate(made)])


def test_calls_of_a_message_are_medians_of_all_rounds_and_functions_count_once() -> None:
    rounds = [walk("read"), walk("read", "send", "send"), walk(*"abcdefg")]
    found = medians({"publish": rounds})
    assert found == {"publish": {"calls": 3, "functions": 2, "modules": 2}}
    assert "| publish | 3 | 2 | 2 |" in table_of_calls(found)


def test_the_round_in_the_middle_shows_what_is_called_most_first() -> None:
    rounds = [walk("read", "send", "send"), walk("read"), walk(*"abcdefg")]
    assert [line.split() for line in listed(rounds).splitlines()] == [
        ["2", "web/send.py", "send"],
        ["1", "web/read.py", "read"],
    ]


# What `perf script` prints of three samples: the frames of each, from the innermost one.
_SAMPLED = """\
\t7f01 _PyObject_Malloc+0x1a (/usr/lib/libpython3.11.so.1.0)
\t7f02 CPyDict_GetItem+0x20 (/env/holdfast__mypyc.cpython-311-x86_64-linux-gnu.so)
\t7f03 CPyDef_hub___Hub____give+0x2e (/env/holdfast__mypyc.cpython-311-x86_64-linux-gnu.so)
\t7f04 CPyDef_hub___Hub___publish+0x8 (/env/holdfast__mypyc.cpython-311-x86_64-linux-gnu.so)

\tffff tcp_sendmsg+0x4 ([kernel.kallsyms])
\t7f05 __pyx_f_6uvloop_4loop_8UVStream__try_write+0x1 (/env/uvloop/loop.cpython-311.so)
\t7f04 CPyDef_hub___Hub___publish+0x8 (/env/holdfast__mypyc.cpython-311-x86_64-linux-gnu.so)

\t7f06 _PyEval_EvalFrameDefault+0x9 (/usr/lib/libpython3.11.so.1.0)
"""


def test_a_profile_counts_what_the_interpreter_does_for_the_function_that_asked_for_it() -> None:
    profile = Profile()
    for stack in stacks(_SAMPLED.splitlines()):
        profile.add(stack)
    assert profile.samples == 3
    assert profile.rows(9) == [
        ("hub.Hub.give", 33.3, 33.3),
        ("uvloop.UVStream__try_write", 33.3, 33.3),
        ("interpreted, or not known", 33.3, 0.0),
    ]
    assert profile.all["hub.Hub.publish"] == 2


def test_a_profile_names_functions_as_the_sources_do() -> None:
    assert (
        plain("CPyDef_sharding___arrivals___Arrivals___take") == "sharding.arrivals.Arrivals.take"
    )
