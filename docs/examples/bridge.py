"""A bridge to MQTT: passes `/sensors/**` on to the topics of a broker, and its `commands/#` back.

    pip install aiomqtt
    python bridge.py http://127.0.0.1:8080 127.0.0.1 1883

What is published for sensors waits in the bridge's named session while the bridge or the broker is
away, and is acknowledged when the broker has confirmed it. So nothing is lost, and a message may
come twice.
"""

import asyncio
import json
import sys
from contextlib import suppress

import aiomqtt

from holdfast import Client, Message, Refuse, ReplyError


async def bridge(client: Client, broker: aiomqtt.Client) -> None:
    """Pass messages on until the broker is lost."""

    async def pass_on(message: Message) -> None:
        topic = message.channel.removeprefix("/")
        try:
            await broker.publish(topic, json.dumps(message.data), qos=1)
        except aiomqtt.MqttError as error:
            raise Refuse("communication.noConnection", str(error), delay_s=1) from error

    await client.subscribe("/sensors/**", pass_on)
    await broker.subscribe("commands/#", qos=1)
    print("ready", flush=True)
    async for message in broker.messages:
        try:
            await client.publish(f"/{message.topic}", json.loads(message.payload))
        except (ValueError, ReplyError) as error:
            print(f"{message.topic} was not passed on: {error}", file=sys.stderr)


async def main(url: str, host: str, port: str) -> None:
    """Connect both, again and again."""
    while True:
        with suppress(aiomqtt.MqttError):
            async with (
                aiomqtt.Client(host, int(port)) as broker,
                Client(url, session="bridge/1") as client,
            ):
                await bridge(client, broker)
        await asyncio.sleep(1)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
