"""The families of metrics of the questions to the backend."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from holdfast.bayeux.state.backend_figures import Action, AskOutcome, BackendFigures


def backend_families(figures: BackendFigures) -> Iterator[Metric]:
    """Yield what the backend is asked, and whether it answers."""
    asked = CounterMetricFamily(
        "holdfast_backend_questions",
        "Questions to the backend by what they were about and what became of them.",
        labels=["action", "outcome"],
    )
    for action in Action:
        for outcome in AskOutcome:
            asked.add_metric([action.value, outcome.value], figures.asked[action, outcome])
    yield asked
    yield GaugeMetricFamily(
        "holdfast_backend_questions_open",
        "Questions that the backend has not answered yet.",
        value=figures.open,
    )
    yield GaugeMetricFamily(
        "holdfast_backend_questions_waiting",
        "Questions that wait until the backend may be asked.",
        value=figures.waiting,
    )
    yield GaugeMetricFamily(
        "holdfast_backend_broken",
        "1 while the backend is hardly asked, because it did not answer again and again.",
        value=figures.is_broken,
    )
