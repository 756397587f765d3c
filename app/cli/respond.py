"""`holdfast respond`: replies to requests, with a text or with what a command prints."""

import asyncio
import os
import signal
from asyncio.subprocess import PIPE
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from holdfast.cli.clients import AsClient, Count, Session
from holdfast.cli.content import filled, parsed
from holdfast.cli.output import note
from holdfast.cli.program import Program
from holdfast.cli.received import print_received
from holdfast.client import Message, Refuse
from holdfast.client.wire import part_of
from holdfast.delivery.basics.json_text import to_json

program = Program()

# The code of a refusal by a command that fails.
_FAILED = "user.update.error"
# The last words of a failed command that the requester is told.
_MOST_TEXT = 500


@program.command()
def respond(
    *,
    channel: Annotated[str, typer.Argument(help="The channel or pattern, such as /prices/ask.")],
    reply: Annotated[
        str | None,
        typer.Option(
            help="Reply with this JSON or text; may have placeholders, including ${data}."
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help="Reply with the output of this shell command, which gets the data as its input.",
        ),
    ] = None,
    session: Session = None,
    count: Count = None,
    login: AsClient,
) -> None:
    """Reply to requests on a channel, until Ctrl-C.

    The data of a request are JSON on the command's standard input; what it prints is the reply, as
    JSON if it is JSON. MESSAGE_CHANNEL and MESSAGE_SENDER are in its environment. A command that
    fails refuses the request, with what it prints to standard error. Each request is printed as
    subscribe prints messages.

    Example: holdfast respond /prices/ask --exec 'jq -c "{of: .of, price: 3}"'
    """
    if (reply is None) is (command is None):
        raise typer.BadParameter("give either --reply or --exec")
    answering = Answering(reply, command, count, login.as_json)

    async def conversation() -> None:
        async with login.client(channels=[channel], waits=True, session=session) as client:
            await asyncio.gather(client.respond(channel, answering))
            note(f"Responding as {client.session_name or 'a client'}; Ctrl-C ends")
            await answering.ended.wait()

    login.run(conversation)


@dataclass(slots=True)
class Answering:
    """Answers requests one by one, and prints them."""

    reply: str | None
    command: str | None
    wanted: int | None
    as_json: bool
    count: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, message: Message) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return the reply. Raises `Refuse` if the command fails."""
        if self.ended.is_set():
            # It stays with the session.
            raise asyncio.CancelledError
        self.count += 1
        refusal = None
        try:
            return await self._answer(message)
        except Refuse as error:
            refusal = error
            raise
        finally:
            self._print(message, refusal)
            if self.count == self.wanted:
                self.ended.set()

    def _print(self, message: Message, refusal: Refuse | None) -> None:
        try:
            print_received(message, refusal, as_json=self.as_json)
        except BrokenPipeError:
            self.ended.set()

    async def _answer(self, message: Message) -> Any:  # noqa: ANN401 - whatever JSON holds
        data = to_json(message.data)
        if self.command is not None:
            return parsed(await _output(self.command, message, data))
        text = filled(str(self.reply), self.count)
        return parsed(text.replace("${data}", data.decode()))


async def _output(command: str, message: Message, data: bytes) -> str:
    """Run a command; return what it prints, without the last line's end."""
    process = await asyncio.create_subprocess_shell(
        command,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        # Ctrl-C is for us: the command may finish.
        start_new_session=True,
        env={
            **os.environ,
            "MESSAGE_CHANNEL": message.channel,
            "MESSAGE_SENDER": message.sender or "",
        },
    )
    left_ms = part_of(message.wire, "ext", "timeout")
    try:
        async with asyncio.timeout(None if left_ms is None else left_ms / 1000):
            output, errors = await process.communicate(data)
    except TimeoutError:
        raise Refuse(_FAILED, "the command did not end in time") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        words = errors.decode("utf-8", "replace").strip()[-_MOST_TEXT:]
        raise Refuse(_FAILED, words or f"the command ended with exit code {process.returncode}")
    return output.decode("utf-8", "replace").rstrip("\n")
