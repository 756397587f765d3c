"""Runs cells of code one after another, as a notebook or `python -m asyncio` does."""

import ast
import inspect
from collections.abc import Iterable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any


async def run_cells(cells: Iterable[str]) -> list[str]:
    """Return the output of each cell; all share their names, and may await."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    for number, cell in enumerate(cells):
        code = compile(cell, f"cell {number}", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with redirect_stdout(StringIO()) as said:
            waits = eval(code, names)
            if inspect.isawaitable(waits):
                await waits
        printed.append(said.getvalue())
    return printed
