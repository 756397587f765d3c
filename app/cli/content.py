"""The data of published messages: from the command line, from a file, or of some size."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count as count_from
from typing import IO, Annotated, Any

import orjson
import typer

# The data that xmlBlaster's demo client publishes.
_USUAL = "Hi-${counter}-${timestamp}"
_CHUNK = 64 * 1024
# How a text begins that was probably meant as JSON.
_BEGINS = ("{", "[", '"')


@dataclass(frozen=True, slots=True)
class Content:
    """The texts that a command publishes: with placeholders, as often as asked for."""

    text: str
    # The file whose lines are published instead, each once.
    file: IO[bytes] | None
    count: int

    @property
    def is_endless(self) -> bool:
        """Whether only an interruption ends it."""
        return self.file is None and self.count == 0

    @property
    def total(self) -> int | None:
        """The number of messages, if it is known."""
        return self.count or None if self.file is None else None

    async def texts(self) -> AsyncIterator[str]:
        """Return the texts, as soon as they are there."""
        if self.file is not None:
            async for line in _lines(self.file):
                yield line
            return
        for number in count_from(1):
            yield self.text
            if number == self.count:
                return


def filled(text: str, counter: int) -> str:
    """Replace the placeholders in a text."""
    if "${" not in text:
        return text
    now_ns = time.time_ns()
    date = datetime.fromtimestamp(now_ns / 1e9).astimezone()
    return (
        text.replace("${counter}", str(counter))
        .replace("${timestamp}", str(now_ns))
        .replace("${date}", date.isoformat(timespec="milliseconds"))
    )


def is_broken(text: str) -> bool:
    """Return whether a text begins as JSON does, and is none."""
    return text.lstrip()[:1] in _BEGINS and parsed(text) is text


def parsed(text: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return what JSON the text is; text that is no JSON is itself the data."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


_File = Annotated[
    typer.FileBinaryRead | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Read the data from a file; - is standard input."
    ),
]


def _data(
    data: Annotated[str | None, typer.Argument(help="JSON, or any text.")] = None,
    file: _File = None,
) -> Any:  # noqa: ANN401 - whatever JSON holds
    if data is not None and file is not None:
        raise typer.BadParameter("give either DATA or --file, not both")
    return parsed(_decoded(file.read()) if file is not None else data or "null")


def _content(
    data: Annotated[
        str | None, typer.Argument(help=f"JSON, or any text; default: {_USUAL}.")
    ] = None,
    file: _File = None,
    by_line: Annotated[
        bool, typer.Option("--lines", help="Publish each line of the file as a message.")
    ] = False,
    size: Annotated[
        int | None, typer.Option(min=0, metavar="CHARACTERS", help="Publish a text of this length.")
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, help="How many messages; 0 for no end.")
    ] = 1,
) -> Content:
    """Content"""
    if sum(given is not None for given in (data, file, size)) > 1:
        raise typer.BadParameter("give only one of DATA, --file and --size")
    if by_line and (file is None or count != 1):
        raise typer.BadParameter("--lines needs --file, and cannot be combined with --count")
    if size is not None:
        return Content("x" * size, None, count)
    if file is None:
        return Content(_USUAL if data is None else data, None, count)
    return Content("", file, 0) if by_line else Content(_decoded(file.read()), None, count)


Data = Annotated[Any, _data]
Contents = Annotated[Content, _content]


async def _lines(file: IO[bytes]) -> AsyncIterator[str]:
    """Return the lines that are not empty."""
    rest = b""
    async for chunk in _chunks(file):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line.strip():
                yield _decoded(line)
    if rest.strip():
        yield _decoded(rest)


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise typer.BadParameter("the content must be UTF-8") from None


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    """Return what the file has, whenever it has something."""
    try:
        await _until_readable(file.fileno())
    except OSError:
        # Neither a pipe nor a terminal: it never lets anybody wait.
        while chunk := file.read(_CHUNK):
            yield chunk
        return
    while chunk := os.read(file.fileno(), _CHUNK):
        yield chunk
        await _until_readable(file.fileno())


async def _until_readable(number: int) -> None:
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(number, _wake, readable)
    try:
        await readable
    finally:
        loop.remove_reader(number)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
