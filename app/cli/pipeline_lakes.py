"""`holdfast pipeline lake`: the tables for which the server keeps frames."""

from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.failures import failed
from holdfast.cli.journal_place import AtJournal, JournalPlace
from holdfast.cli.options import AsJson, Yes, confirm
from holdfast.cli.output import answer, print_items, time_of
from holdfast.cli.program import group_of_commands
from holdfast.cli.spark import failing

if TYPE_CHECKING:
    from holdfast.pipeline.source.readers import Readers

program = group_of_commands()

_LAKES = ("lake", ("FOLDER", itemgetter("place")), time_of("until"))
Id = Annotated[str, typer.Argument(metavar="LAKE", help="Id of the tables, as in the list.")]


@program.command("list")
def show(*, as_json: AsJson = False, journal: AtJournal) -> None:
    """List all tables that the journal is read into, and how far each is."""
    with failing(), _readers(journal) as readers:
        found = [reader._asdict() for reader in readers.all()]
    print_items(_LAKES, found, as_json=as_json)


@program.command("drop")
def drop(*, id: Id, yes: Yes = False, as_json: AsJson = False, journal: AtJournal) -> None:
    """Stop keeping frames for tables that no longer exist; this touches no tables."""
    confirm(f"Stop keeping frames for lake {id}?", yes=yes)
    with failing(), _readers(journal) as readers:
        was_known = readers.drop(id)
    if not was_known:
        raise failed(f"no lake has the id {id}: list them with holdfast pipeline lake list")
    answer({"lake": id}, f"dropped {id}", as_json=as_json)


@contextmanager
def _readers(journal: JournalPlace) -> "Iterator[Readers]":
    # Other commands need not wait until the client of the store is loaded.
    from holdfast.pipeline.source.clients import answering
    from holdfast.pipeline.source.readers import Readers
    from holdfast.pipeline.source.streams import Journals

    with journal.stores() as url, answering(url):
        yield Readers(Journals(url, journal.namespace))
