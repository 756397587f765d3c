"""Commands that ask the server for one thing, or to change one; `asking.py` runs them."""

from typing import Annotated

import typer

from holdfast.cli.asking import Add, Show, asks, facts, lists, lists_first, says
from holdfast.cli.holds import Reason, Until, unstored_text
from holdfast.cli.lists import DATA, ENTRIES
from holdfast.cli.options import Channel, Condition, Prefix, ToServer, Yes, confirm
from holdfast.cli.output import Column, Json, age, answer, brief, time_of
from holdfast.cli.program import Program, group_of_commands
from holdfast.cli.remote import Server
from holdfast.units import Form, counted
from holdfast.web.admin.listed import LISTED, Listed

Subject = Annotated[str, typer.Argument(help="The subject, such as joe.")]
WorkChannel = Annotated[str, typer.Argument(help="The channel, such as /jobs/pictures.")]
MessageId = Annotated[
    str, typer.Argument(help="Id of the message, as in the reply to its publish.")
]
Force = Annotated[bool, typer.Option(help="Discard messages that wait in queues.")]

audit, channel, topic = Program(), group_of_commands(), group_of_commands()
subject, work = group_of_commands(), group_of_commands()
reader, webhook = group_of_commands(), group_of_commands()

_DETAIL: Column = ("DETAIL", lambda item: brief(item["detail"]) if item["detail"] else "")
_RECEIVERS = ("key", "state", "active", "has_connection", "waiting", "in_flight")
_READS: Column = ("CHANNELS", lambda item: _some(item["channels"], item["more"]))
_WAITING = ("waiting", "bytes", age("oldest", "OLDEST"))


def _is(change: str, **done: object) -> Show:
    """Show how a channel has changed; its answer in JSON has what is `done`, too."""

    def show(server: Server, found: Json, asked: Json) -> None:
        text = f"{asked['channel']} is {change}{unstored_text(found)}"
        answer(found | done, text, as_json=server.as_json)

    return show


@lists(audit, None, "/audit", (age("time"), "who", "action", "target", "outcome", _DETAIL))
def list_changes() -> None:
    """List what operators changed or tried to change, the latest first."""


@lists(channel, "list", "/channels", ("name", "subscribers", "rate", "held", "letters"))
def list_channels(*, prefix: Prefix = "") -> None:
    """List the channels with subscribers, messages or dead letters, and held ones, by name.

    The rate is in messages per second; it is known while the console is open.
    """


@lists_first(channel, "get", "/topic/history", ("id", "sender", age("published"), "bytes", DATA))
def get_messages(*, channel: Channel, filter: Condition = None) -> None:
    """Show the newest messages that a channel keeps, the newest first.

    Example: holdfast channel get /orders/7 --filter 'data.price > 100' --limit 5
    """


@asks(channel, "hold", "PUT /held-channels", _is("held back"))
def hold(*, channel: Channel, reason: Reason = "", until: Until = None) -> None:
    """Hold back a channel.

    Its messages wait in the queues, and none is lost, until the given time or until you release it.

    Example: holdfast channel hold /orders/7 --reason 'prices are wrong' --until 30m
    """


@asks(channel, "release", "DELETE /held-channels", _is("released", active=True))
def release(*, channel: Channel) -> None:
    """Release a channel that you or the server holds back."""


@lists(topic, "list", "/topics", ("channel", "state", "kept", "queued", "subscribers"))
def list_topics(*, prefix: Prefix = "") -> None:
    """List topics by name, with what refers to them."""


@asks(topic, "show", "GET /topic", facts)
def show_topic(*, channel: Channel) -> None:
    """Show one topic: its state, its configuration, and what refers to it."""


@topic.command("erase")
def erase_topic(
    *, channel: Channel, force: Force = False, yes: Yes = False, server: ToServer
) -> None:
    """Erase a topic: its configuration, its history and the subscriptions to it.

    Messages that wait in queues are still delivered, unless you add --force.
    """

    found = server.get("/topic", {"channel": channel})
    end = counted(found["subscribers"], "subscription ends", "subscriptions end")
    waiting = counted(found["queued"], "waiting message is", "waiting messages are")
    what = "discarded" if force else "still delivered"
    confirm(f"Erase {channel}? {end}; {waiting} {what}.", yes=yes)
    server.ask("DELETE", "/topic", params={"channel": channel, "force": force})
    done = {"channel": channel, "erased": True}
    answer(done, f"{channel} was erased", as_json=server.as_json)


def _some(names: list[str], more: int) -> str:
    return " ".join(names) + (f" and {more:,} more" if more else "")


def _discarded(server: Server, found: Json, asked: Json) -> None:
    text = counted(found["discarded"], "message was discarded", "messages were discarded")
    answer(found, text, as_json=server.as_json)


def _clears(program: Program, path: str, where: str) -> Add:
    question = f"Discard all messages that wait {where}?"
    return asks(program, "clear", f"DELETE {path}", _discarded, question=question)


@lists(subject, "list", "/subjects", ("subject", *_WAITING))
def list_subjects() -> None:
    """List subjects for which messages wait."""


@lists_first(subject, "show", "/subjects/{subject}/queue", ENTRIES)
def show_subject(*, subject: Subject) -> None:
    """Show the first messages that wait for a subject."""


@_clears(subject, "/subjects/{subject}/queue", "for {subject}")
def clear_subject(*, subject: Subject, yes: Yes = False) -> None:
    """Discard all messages that wait for a subject."""


@lists(work, "list", "/work-queues", ("channel", *_WAITING, "receivers"))
def list_work_queues() -> None:
    """List work queues in which messages wait."""


@lists_first(work, "show", "/work-queue", ENTRIES)
def show_work_queue(*, channel: WorkChannel) -> None:
    """Show the first messages that wait in a work queue."""


@_clears(work, "/work-queue", "in {channel}")
def clear_work_queue(*, channel: WorkChannel, yes: Yes = False) -> None:
    """Discard all messages that wait in a work queue."""


@lists_first(work, "receivers", "/work-queue/receivers", _RECEIVERS)
def show_receivers(*, channel: WorkChannel) -> None:
    """Show the receivers of a work queue, with their entries waiting and in flight."""


@reader.callback()
def group_of_one() -> None:
    """Let the only command have a name."""


@lists(
    reader,
    "list",
    "/readers",
    ("id", "subject", "address", "live", age("since"), "bytes", _READS),
)
def list_readers() -> None:
    """List requests to /streams and /events that wait for messages, the first to come first."""


@webhook.callback()
def group_of_webhooks() -> None:
    """Let the only command have a name."""


@lists(
    webhook,
    "list",
    "/webhooks",
    ("name", "url", "state", "waiting", "delivered", "failed", age("failed_at"), "failure"),
)
def list_webhooks() -> None:
    """List webhooks: whether each is called now, what waits, and the last failure."""


def _listed(row: Listed) -> Program:
    """Return the commands for what operators list and cancel by id."""
    program, path = group_of_commands(), f"/{row.name}"
    columns = [time_of(name) if form is Form.TIME else name for name, form in row.columns.items()]

    def list_messages() -> None: ...

    def cancel(*, id: MessageId) -> None: ...

    list_messages.__doc__ = f"List {row.things}, {row.order}."
    lists(program, "list", path, (*columns, DATA))(list_messages)
    cancel.__doc__ = f"Discard one of the {row.things}."
    cancelled = says("{id} was cancelled", cancelled=True)
    asks(program, "cancel", f"DELETE {path}", cancelled)(cancel)
    return program


PROGRAMS = {
    "audit": audit,
    "channel": channel,
    "topic": topic,
    "subject": subject,
    "work": work,
    "reader": reader,
    "webhook": webhook,
    **{each.name: _listed(each) for each in LISTED},
}
