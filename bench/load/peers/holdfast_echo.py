"""A service of Holdfast that sends back what it receives: `--extension holdfast_echo:install`."""

from holdfast import ServerApi


def install(server: ServerApi) -> None:
    server.services.add("/service/echo", lambda call: call.answer(call.message["data"]))
