"""The form of a page follows from what its reader accepts."""

import pytest

from holdfast.web.prometheus.forms import Form, accepted_form, joined

# What Prometheus 2.42 and 3.5 send.
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
LATER = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.2"
)


@pytest.mark.parametrize("accept", [PROMETHEUS, LATER, "Application/OpenMetrics-Text"])
def test_prometheus_gets_openmetrics(accept: str) -> None:
    assert accepted_form(accept) is Form.OPENMETRICS


def test_only_operators_get_examples() -> None:
    assert accepted_form(PROMETHEUS, is_operator=True) is Form.WITH_EXAMPLES
    assert accepted_form("*/*", is_operator=True) is Form.TEXT


@pytest.mark.parametrize(
    "accept",
    [
        *("", "*/*", "text/html,*/*;q=0.8", "text/plain;version=0.0.4"),
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=nan",
        "application/openmetrics-text;q=x",
        "application/openmetrics-text;q=0.4,text/plain;q=0.5",
    ],
)
def test_everyone_else_gets_the_old_form(accept: str) -> None:
    assert accepted_form(accept) is Form.TEXT


def test_parts_of_a_page_have_one_end() -> None:
    parts = [b"a 1\n# EOF\n", b"b 2\n# EOF\n"]
    assert joined(parts, Form.OPENMETRICS) == b"a 1\nb 2\n# EOF\n"
    assert joined([b"a 1\n", b"b 2\n"], Form.TEXT) == b"a 1\nb 2\n"
