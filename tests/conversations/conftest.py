"""The stage for the stories that were selected, kept over the whole run."""

from collections.abc import Iterator

import pytest

from tests.conversations.runner.theatre import Play, Theatre


@pytest.fixture(scope="session")
def theatre(request: pytest.FixtureRequest) -> Iterator[Theatre]:
    chosen = [
        item.callspec.params["play"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and "theatre" in item.fixturenames
    ]
    with Theatre([play for play in chosen if isinstance(play, Play)]) as theatre:
        yield theatre
