"""The server under attack, and the checks that it is unharmed."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.abuse.attacker import MIB, TIMEOUT_S, Person, SocketPerson, SocketWire, Wire
from tests.serving import Server
from tests.slowness import times_slower

BYSTANDER = Path(__file__).with_name("bystander.py")
# Generous, because coverage may be measured.
WORST_MS = 2000.0
MIDDLE_MS = 150.0
PAGE = 4096
ENTERED = ("holdfast_entries_accepted_total", "holdfast_entries_restored_total")
ASKED = ("holdfast_requests_total", "holdfast_requests_restored_total")
# The outcomes of requests.
ENDS = ("holdfast_requests_outstanding", "holdfast_requests_ended_total")
# The outcomes of entries, and entries that are still in a queue.
PLACES = (
    "holdfast_entries_waiting",
    "holdfast_entries_in_flight",
    "holdfast_entries_settled_total",
)


class Target:
    """A server, its health, and its memory when the test began."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._log_before = len(server.log())
        self._memory_before = self.memory()
        self.url = server.url
        # An error that may be logged.
        self.expected_error = ""
        self.process_id = server.process.pid

    def wire(self, *, source: str | None = None) -> Wire:
        return Wire(self.url, source=source)

    def person(self, *, receive_buffer: int | None = None, **handshake: object) -> Person:
        return Person(self.url, receive_buffer=receive_buffer, **handshake)

    def socket(self, **headers: str) -> SocketWire:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return SocketWire(self.url, named)

    def socket_person(self, *, receive_buffer: int | None = None) -> SocketPerson:
        return SocketPerson(self.url, receive_buffer=receive_buffer)

    def memory(self) -> int:
        statm = Path(f"/proc/{self._server.process.pid}/statm").read_text()
        return int(statm.split()[1]) * PAGE

    def growth_mib(self) -> float:
        """How much more memory is used than before the test."""
        return (self.memory() - self._memory_before) / MIB

    def processor_s(self) -> float:
        """The processor time that the server has used so far."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log(self) -> str:
        """What was logged since the test began."""
        return self._server.log()[self._log_before :]

    def metrics(self, *names: str) -> list[Sample]:
        """Metrics of the server at one moment: those whose names begin so."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=TIMEOUT_S) as response:
            lines = response.read().decode().splitlines(keepends=True)
        # To read all of them takes longer than most attacks.
        text = "".join(line for line in lines if line.startswith(names))
        return [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]

    def metric(self, name: str, **labels: str) -> float:
        """One metric of the server, summed over its labels."""
        return sum(
            sample.value
            for sample in self.metrics(name)
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def until_metric(
        self,
        name: str,
        value: float,
        within_s: float = TIMEOUT_S,
        *,
        at_most: bool = False,
        **labels: str,
    ) -> None:
        deadline = time.monotonic() + within_s
        while (seen := self.metric(name, **labels)) != value and not (at_most and seen < value):
            assert time.monotonic() < deadline, f"{name} is {seen}, not {value}"
            time.sleep(0.05)

    def until_logged(self, text: str, within_s: float = TIMEOUT_S) -> None:
        deadline = time.monotonic() + within_s
        while text not in self.log():
            assert time.monotonic() < deadline, f"not logged: {text}"
            time.sleep(0.05)

    def check_unharmed(self) -> None:
        """Check that nothing failed, all entries add up, and the next client is served."""
        log = self.log()
        assert "Traceback" not in log, log
        for line in log.splitlines():
            is_expected = bool(self.expected_error) and self.expected_error in line
            is_error = json.loads(line)["level"] not in ("debug", "info", "warning")
            assert is_expected or not is_error, line
        figures = self.metrics(*ENTERED, *PLACES, *ASKED, *ENDS)
        entered = sum(each.value for each in figures if each.name in ENTERED)
        assert entered == sum(each.value for each in figures if each.name in PLACES)
        asked = sum(each.value for each in figures if each.name in ASKED)
        assert asked == sum(each.value for each in figures if each.name in ENDS)
        with self.person() as person:
            person.subscribe("/after")
            answer = person.publish("/after", "well")
            assert [each.get("data") for each in answer.messages()] == ["well", None]
            person.ask(person.message("/meta/disconnect"))

    @contextmanager
    def bystander(self, most_work_ms: float = WORST_MS) -> Iterator[None]:
        """Check that another client is served meanwhile without delay.

        Where the server's work is bounded more tightly than the wait, its processor time counts:
        what the machine did instead is nobody's fault.
        """
        address = urlsplit(self.url)
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", str(BYSTANDER)),
                *(str(address.hostname), str(address.port), str(self.process_id)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            output, errors = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, errors
        longest_ms, middle_ms, worked_ms = json.loads(output)
        slower = times_slower()
        assert longest_ms < WORST_MS * slower, f"a bystander waited {longest_ms:.0f} ms"
        assert worked_ms < most_work_ms, f"the server worked {worked_ms:.0f} ms while one waited"
        assert middle_ms < MIDDLE_MS * slower, f"bystanders waited {middle_ms:.0f} ms"
