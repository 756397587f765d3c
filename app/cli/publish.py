"""`holdfast publish`: publishes messages, as a client."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated

import typer

from holdfast.cli.clients import AsClient, Session, refusal
from holdfast.cli.content import Content, Contents, filled, is_broken, parsed
from holdfast.cli.failures import Exit
from holdfast.cli.output import complain, is_terminal, note, print_json, progress, speed
from holdfast.cli.program import Program
from holdfast.cli.qos import Options, PublishOptions
from holdfast.client import Client, ConnectionLost, PublishReply, ReplyError

program = Program()

# Publishes that may wait for their replies.
_WINDOW = 500
# Refusals that are reported one by one.
_MOST_REPORTED = 10
# How much of a text is shown that is no JSON.
_LONGEST_SHOWN = 60
# How long replies may take after an interruption.
_GRACE_S = 5.0


@program.command()
def publish(
    *,
    channel: Annotated[str, typer.Argument(help="The channel, such as /orders/new.")],
    content: Contents,
    options: PublishOptions,
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="Messages per second; default: as many as the server takes."),
    ] = None,
    session: Session = None,
    login: AsClient,
) -> None:
    """Publish messages on a channel.

    Data and keys may have the placeholders ${counter} (1, 2, 3 and so on), ${timestamp} (in
    nanoseconds since 1970) and ${date}; quote them for your shell. The command fills these in, then
    publishes data that is JSON as JSON, and other data as a text. It prints the id of each message;
    on a terminal, only the id of a single message.

    Example: holdfast publish /orders '{"n": ${counter}}' --count 100
    """
    publishing = Publishing(channel, content, options, rate, login.as_json)

    async def conversation() -> None:
        async with login.client(channels=[channel], session=session) as client:
            await publishing.run(client)

    is_whole = login.run(conversation)
    publishing.sum_up()
    if publishing.refused or not (is_whole or content.is_endless):
        raise typer.Exit(Exit.FAILED)


@dataclass(slots=True)
class Publishing:
    """Publishes one message after the other, and reports what became of each, in their order."""

    channel: str
    content: Content
    options: Options
    rate: float | None
    as_json: bool
    # Publishes without a reply, the first one first.
    waiting: deque[tuple[int, asyncio.Task[PublishReply]]] = field(default_factory=deque)
    accepted: int = 0
    refused: int = 0
    began: float = 0.0
    ended: float = 0.0

    async def run(self, client: Client) -> None:
        """Publish everything. After an interruption, wait for the replies that are due."""
        self.began = self.ended = _now()
        try:
            with progress(has_end=not self.content.is_endless) as bar:
                task = bar.add_task("Publishing", total=self.content.total)
                await self._publish_all(client, lambda: bar.advance(task))
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_S):
                    await self._hear(0)
            raise
        finally:
            # The end of a session is reported once, not for each of these.
            given_up = [publish for _, publish in self.waiting]
            for publish in given_up:
                publish.cancel()
            await asyncio.gather(*given_up, return_exceptions=True)

    async def _publish_all(self, client: Client, advance: Callable[[], None]) -> None:
        counter = 0
        async for text in self.content.texts():
            await self._pause(counter)
            counter += 1
            options = {**self.options}
            if options["key"] is not None:
                options["key"] = filled(options["key"], counter)
            text = filled(text, counter)
            if counter == 1 and is_broken(text):
                complain(f"this is no JSON, so it is sent as a text: {text[:_LONGEST_SHOWN]}")
            channel, data = filled(self.channel, counter), parsed(text)
            publish = asyncio.create_task(client.publish(channel, data, **options))
            self.waiting.append((counter, publish))
            await self._hear(_WINDOW)
            advance()
        await self._hear(0)

    async def _pause(self, sent: int) -> None:
        """Wait until the rate allows the next message."""
        if self.rate is None or not sent:
            return
        due = self.began + sent / self.rate
        if due > _now():
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._hear(0)
        # Interruptions are heard here, also when this is late.
        await asyncio.sleep(due - _now())

    async def _hear(self, most: int) -> None:
        """Wait until at most this number of publishes have no reply."""
        while len(self.waiting) > most:
            number, publish = self.waiting[0]
            await asyncio.wait([publish])
            self.waiting.popleft()
            self._report(number, publish)

    def _report(self, number: int, publish: asyncio.Task[PublishReply]) -> None:
        self.ended = _now()
        try:
            reply = publish.result()
        except (ReplyError, ConnectionLost) as error:
            self._report_refused(number, error)
            return
        self.accepted += 1
        channel = filled(self.channel, number)
        if self.as_json:
            fields = {"n": number, "channel": channel, "id": reply.id, "error": None}
            print_json(fields, is_line=True)
        elif self.content.total == 1 or not is_terminal():
            sys.stdout.write(f"{reply.id or ''}\n")

    def _report_refused(self, number: int, error: ReplyError | ConnectionLost) -> None:
        self.refused += 1
        text = refusal(error) if isinstance(error, ReplyError) else str(error)
        if self.as_json:
            channel = filled(self.channel, number)
            fields = {"n": number, "channel": channel, "id": None, "error": str(error)}
            print_json(fields, is_line=True)
        if self.refused <= _MOST_REPORTED:
            complain(f"message {number}: {text}")
        elif self.refused == _MOST_REPORTED + 1:
            complain("more messages were refused")

    def sum_up(self) -> None:
        """Tell how many messages were published, if there were several."""
        if self.content.total != 1:
            refused = f", {self.refused} refused" if self.refused else ""
            note(f"Published {speed(self.accepted, self.ended - self.began)}{refused}")


def _now() -> float:
    return asyncio.get_running_loop().time()
