"""An agent: publishes its answers token by token, so that they survive whatever happens.

docs/tutorials/answers.md says how to run it. Start as many as you like, each with its own number:

    python agent.py http://127.0.0.1:8080 1
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from holdfast import Client, Message, Refuse

DAY_S = 24 * 3600


def weather() -> str:
    """A tool; it fails while it finds no file."""
    try:
        return Path("weather.txt").read_text("utf-8").strip()
    except OSError as error:
        raise Refuse(
            "user.tool.weather", f"No weather: {error.filename} cannot be read."
        ) from error


async def tokens(question: str) -> AsyncIterator[str]:
    """Stands for a model, and says the same whenever it is asked the same."""
    for word in f"You would like to know: {question} Let me see what I can find out.".split():
        await asyncio.sleep(0.1)
        yield f"{word} "
    yield weather() if "weather" in question else "I have found nothing."


async def answer(client: Client, question: Message) -> None:
    """Publish the answer; whatever this raises is said of the question in its dead letter."""
    id, text = question.data["id"], question.data["text"]

    async def say(step: str, **said: str) -> None:
        # A step has one key. If it is published again, by this agent after a lost connection or by
        # another that begins the answer anew, the server takes it once.
        await client.publish(f"/answers/{id}", said, key=f"{id}/{step}", lifetime_s=DAY_S)

    await say("question", question=text)
    try:
        number = 0
        async for token in tokens(text):
            await say(f"{number}", token=token)
            number += 1
    except Refuse as refused:
        # The page learns it, too. The question becomes a dead letter, which operators replay.
        await say(f"failed {question.generation}", failed=refused.text)
        raise
    await say("end", end="answered")


async def work(url: str, number: str) -> None:
    """Answer one question at a time until the program is ended."""
    # All agents are one subject, to which the keys belong.
    async with Client(url, session=f"agent/{number}", terms={"queue": {"maxEntries": 1}}) as client:
        await client.subscribe("/questions", lambda question: answer(client, question))
        print("ready", flush=True)
        await client.wait_closed()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(work(*sys.argv[1:]))
