"""What tests of links between hosts share."""

from pathlib import Path

import pytest

from holdfast.web.host_links import far_keeper
from tests.web.certificates import Authority
from tests.web.host_links.stage import Certificates


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """Certificates of both hosts."""
    return Certificates(Authority(tmp_path))


@pytest.fixture(autouse=True)
def store_is_asked_for_new_links_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see by the number of questions how often links were made."""
    monkeypatch.setattr(far_keeper, "_LINKED_S", 3600.0)
