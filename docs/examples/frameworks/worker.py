"""Packs what was ordered, one order at a time, and tells the user's pages."""

import asyncio
from contextlib import suppress

from docs.examples.frameworks import push
from holdfast import Client, Message, Refuse


async def pack(client: Client, job: Message) -> None:
    """Do a job. It may come again if this worker is killed, but the user hears of it once."""
    order, user, item = (job.data[name] for name in ("order", "user", "item"))
    if item == "anvil":
        raise Refuse("user.shop.tooHeavy", f"nobody can lift order {order}")
    said = {"order": order, "item": item, "state": "packed"}
    await client.publish(push.channel_of(user), said, key=job.id)


async def work() -> None:
    """Take jobs until the program is ended."""

    def token() -> str:
        # Asked for with each handshake, and before a login ends.
        return push.token_for("packer", "workers")

    async with Client(push.URL, token=token, terms={"queue": {"maxEntries": 1}}) as client:
        await client.subscribe(push.JOBS, lambda job: pack(client, job))
        print("ready", flush=True)
        await client.wait_closed()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(work())
