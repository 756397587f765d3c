"""Prometheus reads the metrics of a server; what deploy/ asks it and alerts to is there."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import orjson
import pytest
import yaml

from bench.processes import reserved_port
from tests.integration.alert_cases import CASES, as_promtool_has_them
from tests.serving import ROOT
from tests.web.programs import program
from tests.web.test_webhooks import SECRET

RULES = ROOT / "deploy/prometheus/alerts.yml"
SETTINGS = ROOT / "deploy/prometheus/prometheus.yml"
DASHBOARD = orjson.loads((ROOT / "deploy/grafana/holdfast.json").read_bytes())
pytestmark = pytest.mark.slow

ALERTS = {
    rule["alert"]: rule
    for group in yaml.safe_load(RULES.read_text())["groups"]
    for rule in group["rules"]
}
OPEN, OPERATORS = "holdfast", "holdfast-operators"
SELECTOR = re.compile(r"\b(?:holdfast_\w+|process_\w+|up)\b(?:\{[^}]*\})?")
LIMIT_S = 60.0
CONFIGURATION = """
global: {{scrape_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: holdfast
    static_configs: [{{targets: ["{place}"]}}]
  - job_name: holdfast-operators
    metrics_path: /admin/metrics
    authorization: {{credentials_file: {token}}}
    static_configs: [{{targets: ["{place}"]}}]
"""


def tool(name: str) -> str:
    """Where a program of Prometheus is."""
    found = shutil.which(name, path=Path(sys.executable).parent) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: make setup-prometheus")
    return found


def promtool(*words: str | Path, page: str = "") -> None:
    done = subprocess.run([tool("promtool"), *words], input=page, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


class Prometheus(NamedTuple):
    """A Prometheus that watches a server with two workers."""

    url: str
    server: str

    def get(self, what: str, **given: str | float) -> Any:
        with urlopen(f"{self.url}/api/v1/{what}?{urlencode(given)}", timeout=LIMIT_S) as response:
            return orjson.loads(response.read())["data"]

    def series(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return found

    def has(self, expression: str) -> bool:
        return bool(self.series(expression))


def until(is_done: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + LIMIT_S
    while not is_done():
        assert time.monotonic() < ends_at
        time.sleep(0.1)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    home = tmp_path_factory.mktemp("watched")
    program_of_prometheus = tool("prometheus")
    hook = {"url": "http://127.0.0.1:9", "secret": SECRET, "channels": ["/orders"]}
    hooks = orjson.dumps({"shop": hook | {"allow_private": True}}).decode()
    words = ("--supervisor", "--workers", "2", "--port", "0", "--webhooks", hooks)
    with program(*words, home=home) as running:
        url = running.place()
        place = url.removeprefix("http://").partition("/")[0]
        token = home / "data" / "reader-token"
        text = CONFIGURATION.format(rules=RULES, place=place, token=token)
        (home / "prometheus.yml").write_text(text)
        with prometheus(program_of_prometheus, home) as its_url:
            watching = Prometheus(its_url, f"http://{place}")
            # Rates need several readings, before and after something has happened.
            until(lambda: watching.has("count_over_time(holdfast_build_info[1m]) >= 2"))
            exchange_a_message(watching.server)
            until(lambda: watching.has('sum(holdfast_hand_over_seconds_count{job="holdfast"}) > 0'))
            until(lambda: watching.has("count_over_time(holdfast_build_info[1m]) >= 5"))
            yield watching
        assert running.stop()[0] == 0


@contextmanager
def prometheus(program_of_prometheus: str, home: Path) -> Iterator[str]:
    with reserved_port() as port:
        words = [
            *(f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/series"),
            *(f"--web.listen-address=127.0.0.1:{port}", "--enable-feature=exemplar-storage"),
        ]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen([program_of_prometheus, *words], stderr=log, stdout=log)
        url = f"http://127.0.0.1:{port}"

        def is_ready() -> bool:
            assert process.poll() is None, (home / "log").read_text()
            try:
                with urlopen(f"{url}/-/ready", timeout=LIMIT_S) as response:
                    return bool(response.status == 200)
            except URLError:
                return False

        try:
            until(is_ready)
            yield url
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def exchange_a_message(server: str) -> None:
    """Let a client acknowledge a message that it publishes to itself, and ask for nonsense."""
    cookie = ""

    def ask(**message: Any) -> dict[str, Any]:
        nonlocal cookie
        headers = {"Content-Type": "application/json", "Cookie": cookie}
        request = Request(f"{server}/cometd", orjson.dumps([message]), headers)
        with urlopen(request, timeout=LIMIT_S) as response:
            cookie = response.headers.get("Set-Cookie", cookie).partition(";")[0]
            reply: dict[str, Any] = orjson.loads(response.read())[-1]
            return reply

    hello = {"version": "1.0", "supportedConnectionTypes": ["long-polling"], "ext": {"ack": True}}
    client = ask(channel="/meta/handshake", **hello)["clientId"]
    connect = {
        **{"channel": "/meta/connect", "clientId": client, "connectionType": "long-polling"},
        "advice": {"timeout": 0},
    }
    assert ask(channel="/meta/subscribe", clientId=client, subscription="/news")["successful"]
    assert ask(**connect, ext={"ack": 0})["successful"]
    assert ask(channel="/news", clientId=client, data=1)["successful"]
    for batch in (1, 2, 3):
        assert ask(**connect, ext={"ack": batch})["successful"]
    assert not ask(**connect | {"clientId": "nobody"})["successful"]


def test_each_alert_says_what_it_means_and_what_to_do() -> None:
    for name, rule in ALERTS.items():
        assert name.startswith("Holdfast")
        assert {*rule["annotations"]} == {"summary", "meaning", "action"}
        assert all(len(text.split()) > 2 for text in rule["annotations"].values()), name
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_the_rules_and_the_settings_are_valid() -> None:
    promtool("check", "rules", RULES)
    promtool("check", "config", SETTINGS)


def test_each_alert_fires_on_its_data_and_on_no_other(tmp_path: Path) -> None:
    assert [*CASES] == [*ALERTS]
    severities = {name: rule["labels"]["severity"] for name, rule in ALERTS.items()}
    (tmp_path / "tests.yml").write_bytes(as_promtool_has_them(RULES, severities))
    promtool("test", "rules", tmp_path / "tests.yml")


def test_the_panels_of_the_dashboard_are_explained_and_do_not_overlap() -> None:
    places = [each["gridPos"] for each in DASHBOARD["panels"]]
    cells = [
        (place["x"] + x, place["y"] + y)
        for place in places
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(cells) == len({*cells})
    assert max(x for x, _ in cells) < 24
    panels = [each for each in DASHBOARD["panels"] if each["type"] != "row"]
    assert all(each["description"] for each in panels)
    assert {each["datasource"]["uid"] for each in panels} == {"${datasource}"}
    ids = [each["id"] for each in DASHBOARD["panels"]]
    assert len(ids) == len({*ids})


def expressions_of_the_dashboard() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    yield from (each["expr"] for each in DASHBOARD["annotations"]["list"])


def test_what_the_alerts_are_about_is_exported(watched: Prometheus) -> None:
    for name, rule in ALERTS.items():
        found = SELECTOR.findall(rule["expr"])
        assert found, name
        for each in found:
            until(partial(watched.has, each))
        # It has a value, or nothing that it compares: no error in either case.
        watched.series(rule["expr"])


def test_everything_on_the_dashboard_has_data(watched: Prometheus) -> None:
    expressions = [*expressions_of_the_dashboard()]
    assert len(expressions) > 50
    for each in expressions:
        # On a slow machine single readings fail: the window holds many.
        asked = each.replace("$__rate_interval", "1m").replace("$instance", ".*")
        asked = asked.replace("$job", OPEN)
        assert "$" not in asked
        selected = SELECTOR.findall(asked)
        assert selected
        asked_for = [*selected, *([asked] if " > 0" not in asked else [])]
        for one in asked_for:
            until(partial(watched.has, one))


def test_the_lists_of_the_dashboard_have_something_to_choose(watched: Prometheus) -> None:
    for variable in DASHBOARD["templating"]["list"][1:]:
        series, label = re.fullmatch(
            r"label_values\((.*), (\w+)\)", variable["definition"]
        ).groups()  # type: ignore[union-attr]
        for found in watched.series(series.replace("$job", OPEN)):
            assert found["metric"][label]


def test_only_operators_get_messages_as_examples(watched: Prometheus) -> None:
    def examples(job: str) -> list[str]:
        found = watched.get(
            "query_exemplars",
            query=f'holdfast_hand_over_seconds_bucket{{job="{job}"}}',
            start=time.time() - 600,
            end=time.time() + 60,
        )
        return [each["labels"]["message_id"] for series in found for each in series["exemplars"]]

    until(lambda: bool(examples(OPERATORS)))
    assert re.fullmatch(r"\w+-\d{19}", examples(OPERATORS)[0])
    assert examples(OPEN) == []


def test_both_pages_are_read_without_errors(watched: Prometheus) -> None:
    def what_happened() -> list[tuple[str, str]]:
        targets = watched.get("targets")["activeTargets"]
        return [(each["health"], each["lastError"]) for each in targets]

    until(lambda: what_happened() == [("up", "")] * 2)


def test_prometheus_has_nothing_to_object_to_the_names(watched: Prometheus) -> None:
    with urlopen(f"{watched.server}/metrics", timeout=LIMIT_S) as response:
        page = response.read().decode()
    own = [line for line in page.splitlines() if re.match(r"(# \w+ )?holdfast_", line)]
    promtool("check", "metrics", page="\n".join(own) + "\n")
