"""A minute of the hour: stock clients at the doors of three hosts, of which some fail.

`python -m tests.chaos.hour` plays everything that can happen, for as long as it is told to.
"""

import sys
from pathlib import Path

import pytest

from tests.chaos.hour import RATES, STOCK, hour, wrongs
from tests.clients.node_client import require_java
from tests.clients.story import Story

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SEED = 1
HAPPENS = ("host killed", "host updated", "cut off from the store")


def test_stock_clients_with_names_miss_nothing_while_hosts_fail(tmp_path: Path) -> None:
    require_java()
    with hour(tmp_path, SEED, "one") as found:
        story = Story(found, tmp_path, STOCK, rates=RATES, is_durable=True)
        story.play([found.deed(each) for each in HAPPENS])
        sys.stdout.write(f"\n{story.figures()}")
        assert wrongs(story, len(HAPPENS)) == []
