"""`holdfast pipeline verify`: checks that all files of the tables are as they were written."""

from typing import Annotated

import typer

from holdfast.cli.failures import Exit, failed
from holdfast.cli.journal_place import AtJournal
from holdfast.cli.options import AsJson
from holdfast.cli.output import note, print_rows, progress
from holdfast.cli.spark import failing
from holdfast.pipeline.lake import Lake
from holdfast.units import counted

_ADD = typer.Option(help="First give files without a digest that of what they contain now.")


def verify(
    *,
    add_digests: Annotated[bool, _ADD] = False,
    as_json: AsJson = False,
    journal: AtJournal,
) -> None:
    """Read all files of the tables, and show those that are not as they were written.

    The exit code is 1 if there are any, and 5 if there are none, but some files have no digest.
    """
    lake = Lake(journal.lake)
    with failing(), progress() as bar:
        from holdfast.pipeline import verification

        if add_digests:
            with lake.alone_with_tables():
                note(f"{counted(verification.add_digests(lake), 'digest')} added")
        task = bar.add_task("Files", total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        found = verification.verify(lake, report)
    if found.flaws or as_json:
        print_rows(verification.Flaw._fields, found.flaws, as_json=as_json)
    if found.flaws:
        # The way back depends on the table: readers say it.
        raise failed(f"{counted(len(found.flaws), 'file')} changed")
    note(f"{counted(found.files, 'file')} as written")
    if found.unknown:
        raise failed(
            f"{counted(found.unknown, 'file')} without a digest, from an earlier version or "
            "another program: nobody can tell whether they changed. "
            "holdfast pipeline verify --add-digests gives them one",
            Exit.UNCERTAIN,
        )
