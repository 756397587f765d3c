"""A bot in the chat: rolls dice for whoever writes `!roll 2d6`.

Open http://127.0.0.1:8080/chat/, then start the bot and write to it:

    python bot.py http://127.0.0.1:8080 lobby

It has a named session. What is written while the bot is away waits for it, for as long as the
server keeps its session.
"""

import asyncio
import random
import re
import sys
from contextlib import suppress
from uuid import uuid4

from holdfast import Client, Message

NAME = "dice"
COMMAND = re.compile(r"!roll (\d{1,2})d(\d{1,3})")


def answer(text: str) -> str | None:
    """Return what the bot says to this, if it is meant."""
    asked = COMMAND.fullmatch(text.strip())
    if asked is None or "0" in asked.groups():
        return None
    count, sides = map(int, asked.groups())
    rolls = [random.randint(1, sides) for _ in range(count)]  # noqa: S311
    return f"{' + '.join(map(str, rolls))} = {sum(rolls)}"


async def chat(url: str, room: str) -> None:
    """Stay in a room until the program is ended."""
    async with Client(url, session=f"{NAME}/1") as client:

        async def hear(message: Message) -> None:
            said = answer(str(message.data.get("text")))
            if said is not None:
                line = {"id": uuid4().hex, "from": NAME, "text": said}
                # Repeated if the message comes again, it is still one line of the chat.
                await client.publish(message.channel, line, key=f"{NAME}-{message.id}")

        await client.subscribe(f"/chat/room/{room}", hear)
        print("ready", flush=True)
        await client.wait_closed()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(chat(*sys.argv[1:]))
