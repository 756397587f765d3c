"""What operators list and cancel by id, all in the same way: the table of it.

The resources of REST, the commands of `holdfast` and the pages of the console derive from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.units import Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Messages of one kind. Their resource has `GET /name` for a page, and `DELETE /name?id=`."""

    # The command, the path and the page.
    name: str
    title: str
    # What they are, in which order, and what becomes of them.
    things: str
    order: str
    explanation: str
    # The columns before the data, and how people write them.
    columns: Mapping[str, Form]
    # The module and the class of the resource.
    resource: tuple[str, str]

    @property
    def help(self) -> str:
        return f"List and cancel {self.things}."


LISTED: Final = (
    Listed(
        name="delayed",
        title="Delayed",
        things="messages that wait until they are due",
        order="those that are due first at the top",
        explanation="They were accepted, and are published when they are due.",
        columns={
            "id": Form.MESSAGE,
            "due": Form.TIME,
            "channel": Form.CHANNEL,
            "sender": Form.TEXT,
            "bytes": Form.BYTES,
        },
        resource=("holdfast.web.admin.delayed", "DelayedResource"),
    ),
)
