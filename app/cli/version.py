"""`holdfast version`: shows what is installed."""

from holdfast.cli.installed import facts, summary
from holdfast.cli.options import AsJson
from holdfast.cli.output import answer
from holdfast.cli.program import Program

program = Program()


@program.command()
def version(*, as_json: AsJson = False) -> None:
    """Show the version, and whether the core is compiled."""
    answer(facts(), summary(), as_json=as_json)
