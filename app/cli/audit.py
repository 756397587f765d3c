"""`holdfast audit`: lists what operators changed."""

from holdfast.cli.lists import Range, print_list
from holdfast.cli.options import ToServer
from holdfast.cli.output import Column, age, brief
from holdfast.cli.program import Program

program = Program()


_DETAIL: Column = ("DETAIL", lambda item: brief(item["detail"]) if item["detail"] else "")
_CHANGES = (age("time"), "who", "action", "target", "outcome", _DETAIL)


@program.command()
def audit(*, shown: Range, server: ToServer) -> None:
    """List what operators changed or tried to change, the latest first."""
    print_list(server, "/audit", {}, _CHANGES, shown)
