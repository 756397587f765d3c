"""A server-side service for remote calls, as an application would add one."""

from app.bayeux.extension_chain import ServerExtension
from app.bayeux.server import Bayeux
from app.bayeux.services import Call


def echo(call: Call) -> None:
    call.answer(call.data)


def fail(call: Call) -> None:
    call.fail(call.data)


def factory(bayeux: Bayeux) -> ServerExtension:
    """Named on the command line: `--extension tests.clients.echo:factory`."""
    bayeux.services.add("/service/echo", echo)
    bayeux.services.add("/service/fail", fail)
    return ServerExtension()
