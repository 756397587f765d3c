"""How one shard asks the others."""

from pathlib import Path

from holdfast.web.joint.asking import Ask, NoAnswer, Shards

ASK = Ask(method="GET", path="/about", who="ada", headers={})


async def test_a_shard_that_ends_reaches_no_other_one() -> None:
    shards = Shards(0, [Path("/nowhere/0"), Path("/nowhere/1")], lambda: "1")
    await shards.close()
    assert await shards.ask_all(ASK) == [
        NoAnswer(0, "it cannot be reached"),
        NoAnswer(1, "it cannot be reached"),
    ]
