"""What the server says about itself."""

from unittest.mock import Mock

from holdfast.web.admin.system import SystemResource


async def test_a_server_has_started_before_anyone_asked() -> None:
    server = Mock(version="1.2", keeps_journal=True)
    node = server.life.state.node
    node.now_ms = lambda: 9_000
    node.name = "a"
    figures = Mock(started=5_000)
    others = {each: Mock() for each in ("now", "shards", "letters", "results")}
    resource = SystemResource(server, figures=figures, **others)
    about = await resource.about("operator ada")
    assert (about.started, about.now) == (5_000, 9_000)
