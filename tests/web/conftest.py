"""What tests of the doors share."""

from collections.abc import Iterator

import pytest
from blockbuster import blockbuster_ctx


@pytest.fixture(scope="module")
def nothing_blocks() -> Iterator[None]:
    """Whatever keeps the event loop waiting for the system is an error."""
    with blockbuster_ctx() as watch:
        for call in watch.functions.values():
            # A server that is being made reads its pages.
            call.can_block_in("app/web/pages.py", "add_pages")
        yield
