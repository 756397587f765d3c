"""The invariant of requests: each has one outcome, whatever happens to the server."""

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.history import Operation, Phase
from tests.chaos.ledger import Ledger

Found = Iterator[str]


def not_one(ledger: Ledger) -> Found:
    """Requests that ended twice, or never, or although they were refused."""
    told: dict[str, dict[str, Operation]] = defaultdict(dict)
    for outcome in ledger.outcomes:
        # An event that comes again has the same id.
        told[outcome.fields["tag"]][outcome.fields["id"]] = outcome
    for request in ledger.requests:
        tag = request.fields["tag"]
        yield from _faults(request, list(told.pop(tag, {}).values()))
    for tag in told:
        yield f"an outcome of {tag} came, which nobody had asked"


def _faults(request: Operation, told: list[Operation]) -> Found:
    tag = request.fields["tag"]
    if request.fields["mode"] == "all":
        replies = [each for each in told if not each.fields["end"]]
        ends = [each for each in told if each.fields["end"]]
        yield from _faults_of_replies(tag, replies, ends)
    else:
        replies, ends = [], told
    if len(ends) > 1:
        yield f"{tag} has {len(ends)} outcomes: {', '.join(map(_named, ends))}"
    elif told and request.outcome is Phase.FAIL:
        yield f"{tag} was refused and has an outcome: {_named(told[0])}"
    elif not ends and request.outcome is Phase.OK:
        yield f"{tag} has no outcome"


def _faults_of_replies(tag: str, replies: list[Operation], ends: list[Operation]) -> Found:
    speakers = [each.fields["by"] for each in replies]
    if len(set(speakers)) < len(speakers):
        yield f"{tag} has two replies of one responder: {', '.join(sorted(speakers))}"
    for end in ends:
        counted = end.fields["replies"]
        if counted != len(replies):
            yield f"{tag} ended with {counted} replies, but {len(replies)} came"


def _named(outcome: Operation) -> str:
    return outcome.fields["end"] or f"a reply of {outcome.fields['by']}"
