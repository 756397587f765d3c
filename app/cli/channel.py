"""`holdfast channel`: lists channels, shows what they keep, holds and releases them."""

from holdfast.cli.holds import Reason, Until, hold_body
from holdfast.cli.lists import DATA, First, Range, print_first, print_list
from holdfast.cli.options import Channel, Condition, Prefix, ToServer
from holdfast.cli.output import age, answer
from holdfast.cli.program import group_of_commands
from holdfast.cli.remote import Params

program = group_of_commands()

_CHANNELS = ("name", "subscribers", "rate", "held", "letters")
_MESSAGES = ("id", "sender", age("published"), "bytes", DATA)
_HELD = "/held-channels"


@program.command("list")
def list_channels(*, prefix: Prefix = "", shown: Range, server: ToServer) -> None:
    """List the channels with subscribers, messages or dead letters, and held ones, by name.

    The rate is in messages per second; it is known while the console is open.
    """
    print_list(server, "/channels", {"prefix": prefix}, _CHANNELS, shown)


@program.command("get")
def get_messages(
    *,
    channel: Channel,
    filter: Condition = None,
    shown: First,
    server: ToServer,
) -> None:
    """Show the newest messages that a channel keeps, the newest first.

    Example: holdfast channel get /orders/7 --filter 'data.price > 100' --limit 5
    """
    asked: Params = {"channel": channel, "filter": filter}
    print_first(server, "/topic/history", asked, _MESSAGES, shown)


@program.command("hold")
def hold(*, channel: Channel, reason: Reason = "", until: Until = None, server: ToServer) -> None:
    """Hold back a channel.

    Its messages wait in the queues, and none is lost, until the given time or until you release it.

    Example: holdfast channel hold /orders/7 --reason 'prices are wrong' --until 30m
    """
    body = {"channel": channel, **hold_body(reason, until)}
    done = server.talk(lambda remote: remote.ask("PUT", _HELD, body))
    answer(done, f"{channel} is held back", as_json=server.as_json)


@program.command("release")
def release(*, channel: Channel, server: ToServer) -> None:
    """Release a channel that you or the server holds back."""
    server.talk(lambda remote: remote.ask("DELETE", _HELD, params={"channel": channel}))
    done = {"channel": channel, "active": True}
    answer(done, f"{channel} is released", as_json=server.as_json)
