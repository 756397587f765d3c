"""Reads the steps of a message from tables of the pipeline, which keep events for longer."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import cast

import orjson

from holdfast.web.admin.faults import CONFLICT, TOO_LARGE, TOO_OFTEN, TOO_SLOW, RequestFailed
from holdfast.web.admin.message_views import TraceStep

_PROGRAM = (sys.executable, "-P", "-m", "holdfast.pipeline.trace")
_TIMEOUT_S = 15.0
_MOST_BYTES = 1024 * 1024
# The alternative, for operators.
_ELSEWHERE = "run holdfast message ID --lake DIR"
_FAILED = "the program that reads the tables failed"


class TableReader:
    """Reads tables in a separate process, one at a time: the server does not load the pipeline."""

    def __init__(self, program: Sequence[str] = _PROGRAM, timeout_s: float = _TIMEOUT_S) -> None:
        self._program = program
        self._timeout_s = timeout_s
        self._turn = asyncio.Lock()

    async def steps(
        self, origins: Iterable[str], ns: int, folders: Sequence[str]
    ) -> list[TraceStep]:
        """Return a message's steps as the tables in the first of the folders that exists have them.

        Its id may begin with any of the names.

        Raises:
            RequestFailed: The tables cannot be read, or not in bounds of time and size.
        """
        if self._turn.locked():
            raise RequestFailed(
                TOO_OFTEN, "the server is reading the tables for another request: try again soon"
            )
        async with self._turn:
            try:
                answer = orjson.loads(await self._answer(" ".join(origins), str(ns), *folders))
            except OSError as error:
                raise RequestFailed(CONFLICT, f"{_FAILED}: {error.strerror}") from error
        if isinstance(answer, str):
            raise RequestFailed(CONFLICT, answer)
        return [TraceStep(**step) for step in answer]

    async def _answer(self, *words: str) -> bytes:
        # A Ctrl-C in the server's terminal does not reach it. It ends with the request.
        process = await asyncio.create_subprocess_exec(
            *self._program,
            *words,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=DEVNULL,
            limit=_MOST_BYTES,
            start_new_session=True,
        )
        output = cast("asyncio.StreamReader", process.stdout)
        try:
            async with asyncio.timeout(self._timeout_s):
                line = await output.readline()
        except TimeoutError:
            raise RequestFailed(
                TOO_SLOW,
                f"the tables gave no answer in {self._timeout_s:g} seconds: {_ELSEWHERE}",
            ) from None
        except ValueError:
            raise RequestFailed(
                TOO_LARGE, f"the tables have more steps than fit into an answer: {_ELSEWHERE}"
            ) from None
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if not line.endswith(b"\n"):
            raise RequestFailed(CONFLICT, f"{_FAILED}: {_ELSEWHERE} to see why")
        return line
