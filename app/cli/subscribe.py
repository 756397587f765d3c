"""`holdfast subscribe`: shows messages, as a client, and refuses them if it is told to."""

import asyncio
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Annotated

import typer

from holdfast.cli.clients import AsClient, Count, Session
from holdfast.cli.failures import failed
from holdfast.cli.output import note, speed, telling
from holdfast.cli.program import Program
from holdfast.cli.qos import SubscribeOptions
from holdfast.cli.received import print_received
from holdfast.client import Client, Message, Refuse, ReplyError, Subscription
from holdfast.client.errors import refusal_for
from holdfast.delivery.basics.error_codes import find
from holdfast.delivery.routing.filter_language import FilterInvalid
from holdfast.delivery.routing.selections import Candidate, Filter
from holdfast.units import counted

program = Program()

# Everything that the server sends to a session.
_ALL = "/**"
_SERVICE = "/service/"
# Messages that are addressed to a session or subject come here.
_ADDRESSED = "/service/ptp"


def _refusal(
    fail_with: Annotated[
        str | None,
        typer.Option(
            metavar="CODE",
            help="Refuse every message with this error code, such as user.update.holdback.",
        ),
    ] = None,
    fail_message: Annotated[str, typer.Option(help="The text of the refusals.")] = "",
    fail_runtime: Annotated[
        str | None,
        typer.Option(help="Refuse every message, like a program that crashes with this text."),
    ] = None,
) -> Refuse | None:
    """Refusals"""
    if fail_runtime is not None:
        if fail_with is not None:
            raise typer.BadParameter("give either --fail-with or --fail-runtime, not both")
        return refusal_for(RuntimeError(fail_runtime))
    if fail_with is None:
        if fail_message:
            raise typer.BadParameter("--fail-message needs --fail-with")
        return None
    if find(fail_with) is None:
        raise typer.BadParameter(
            f"{fail_with!r} is not an error code: write one such as user.order.quantity"
        )
    return Refuse(fail_with, fail_message)


@program.command()
def subscribe(
    *,
    channels: Annotated[
        list[str],
        typer.Argument(metavar="CHANNEL", help="Channels or patterns: /orders/7, /orders/**."),
    ],
    options: SubscribeOptions,
    session: Session = None,
    retries: Annotated[
        int | None,
        typer.Option(
            min=-1, help="How often the server tries to reach the session again; -1 for ever."
        ),
    ] = None,
    refusal: Annotated[Refuse | None, _refusal],
    update_sleep: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Time to spend on each message.")
    ] = 0,
    count: Count = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="End after this time.")
    ] = None,
    login: AsClient,
) -> None:
    """Show messages as they arrive, until Ctrl-C.

    A message counts as processed when it has been printed. In a pipe, its line has the time, the
    channel, the sender and the data, with tabs in between. Dead letters are messages of
    /sys/deadMessage.

    Example: holdfast subscribe '/orders/**' --session joe/1 --history 10
    """
    terms = None if retries is None else {"retries": retries}
    subscriber = Subscriber(refusal, update_sleep, count, login.as_json)

    async def conversation() -> None:
        # A message that the end of the time interrupts is not processed.
        with suppress(TimeoutError):
            async with login.client(
                channels=channels, waits=True, session=session, terms=terms
            ) as client:
                if client.session_name is None and options["filter"] is not None:
                    # Not Holdfast: other servers have no filters.
                    subscriber.filter = _compiled(options["filter"])
                inbox = await client.listen(_ALL)
                await _subscribe(client, channels, options)
                note(f"Subscribed as {client.session_name or 'a client'}; Ctrl-C ends")
                has_limit = count is None or seconds is not None
                with nullcontext() if has_limit else telling(subscriber.stage):
                    async with asyncio.timeout(seconds):
                        await subscriber.show_all(inbox)

    try:
        login.run(conversation)
    finally:
        subscriber.sum_up()
    if subscriber.lacks_messages:
        raise failed(f"fewer than {counted(count or 0, 'message')} arrived")


async def _subscribe(client: Client, channels: list[str], options: SubscribeOptions) -> None:
    """Subscribe, if possible as a session that no request waits for: it never answers."""
    asked = options["qos"] or {}
    chosen = {**options, "qos": {"responds": False, **asked}}
    try:
        await _subscribe_to_all(client, channels, chosen)
    except ReplyError as error:
        if "responds" in asked or "responds" not in error.arguments:
            raise
        note("The server is older than this command: its requests wait for this session, too")
        await _subscribe_to_all(client, channels, options)


async def _subscribe_to_all(client: Client, channels: list[str], options: SubscribeOptions) -> None:
    await asyncio.gather(
        *(client.subscribe(each, _leave_to_the_inbox, **options) for each in channels)
    )


def _compiled(text: str) -> Filter:
    try:
        return Filter(text)
    except FilterInvalid as error:
        raise typer.BadParameter(f"--filter: {error}") from None


def _leave_to_the_inbox(message: Message) -> None:
    """Do nothing: one loop shows the messages of all channels, in their order."""


@dataclass(slots=True)
class Subscriber:
    """Prints messages, and refuses them if that is wanted."""

    refusal: Refuse | None
    update_sleep: float
    wanted: int | None
    as_json: bool
    # The filter, if the server has no filters.
    filter: Filter | None = None
    count: int = 0
    began: float = 0.0
    ended: float = 0.0

    async def show_all(self, inbox: Subscription) -> None:
        """Show what arrives, until there were as many messages as wanted."""
        async for message in inbox:
            if not self._is_wanted(message):
                continue
            self.ended = time.monotonic()
            self.began = self.began or self.ended
            if self.update_sleep:
                await asyncio.sleep(self.update_sleep)
            print_received(message, self.refusal, as_json=self.as_json)
            if self.refusal is not None:
                inbox.refuse(self.refusal.code, self.refusal.text)
            self.count += 1
            if self.count == self.wanted:
                return

    def _is_wanted(self, message: Message) -> bool:
        if message.channel.startswith(_SERVICE):
            return message.channel == _ADDRESSED
        if self.filter is None:
            return True
        candidate = Candidate(
            channel=message.channel,
            data=message.data,
            sender=message.sender or "",
            priority=message.priority,
            properties=message.properties,
        )
        return candidate.passes(self.filter)

    @property
    def lacks_messages(self) -> bool:
        """Whether there were fewer messages than wanted."""
        return self.wanted is not None and self.count < self.wanted

    def stage(self) -> str:
        """How far it has come."""
        return f"Received {self.count} of {counted(self.wanted or 0, 'message')}"

    def sum_up(self) -> None:
        """Tell how many messages there were, if there were any."""
        verb = "Received" if self.refusal is None else "Refused"
        if self.count:
            note(f"{verb} {speed(self.count, self.ended - self.began)}")
