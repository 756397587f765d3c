"""An operator finishes the upgrade of the store of a running server."""

from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT, OLDEST_LAYOUT
from tests.web.live_server import LiveServer


async def test_a_new_store_has_the_newest_layout(server: LiveServer) -> None:
    found = await server.api.upgrade.upgrade()
    assert (found.finished, found.layout, found.changes) == (True, LAYOUT, [])
    await server.api.upgrade.finish_upgrade("operator")
    assert await server.audited() == []


async def test_the_upgrade_is_finished_in_the_store_and_is_in_the_audit(server: LiveServer) -> None:
    store = server.store_process.store
    meta = RedisKeys("test").meta
    server.store_process.server.ask("HSET", meta, "version", OLDEST_LAYOUT)
    store.layout.enter(OLDEST_LAYOUT)
    before = await server.api.upgrade.upgrade()
    assert (before.finished, before.releases) == (False, "0.2 and 0.3")
    assert len(before.changes) == LAYOUT - OLDEST_LAYOUT
    assert (await server.api.upgrade.finish_upgrade("operator")).finished
    assert server.store_process.hash(meta)["version"] == str(LAYOUT)
    (entry,) = await server.audited()
    assert (entry.action, entry.outcome) == ("upgrade.finish", "ok")
    assert entry.detail == {"before": OLDEST_LAYOUT, "now": LAYOUT}
