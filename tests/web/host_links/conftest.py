"""What tests of links between hosts share."""

from pathlib import Path

import pytest

from tests.web.certificates import Authority
from tests.web.host_links.stage import Certificates


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Certificates of both hosts."""
    return Certificates(Authority(tmp_path))
