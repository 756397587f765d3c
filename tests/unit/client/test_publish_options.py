"""The options of a publish: what the client sends for them, and that the command line has them."""

from typing import Any

import pytest

from holdfast.bayeux.publish import qos
from holdfast.cli.main import load
from holdfast.client.publish_options import OPTIONS, publish_ext


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, None),
        ({"priority": None}, None),
        ({"qos": {}}, {}),
        ({"key": "k", "persistent": False}, {"key": "k", "persistent": False}),
        ({"lifetime_s": 1.5}, {"expiration": {"lifeTime": 1500}}),
        ({"delay_s": 0.25}, {"delay": 250}),
        (
            {"destinations": ["joe", {"name": "ann/1", "forceQueuing": True}]},
            {"destinations": [{"name": "joe"}, {"name": "ann/1", "forceQueuing": True}]},
        ),
        ({"priority": 1, "qos": {"priority": 2}}, {"priority": 2}),
    ],
)
def test_the_options_that_are_given_are_sent_as_the_server_reads_them(
    given: dict[str, Any], sent: dict[str, Any] | None
) -> None:
    assert publish_ext(**given) == ({} if sent is None else {"delivery": sent})
    qos.Qos.of(sent or {})


def test_an_option_that_does_not_exist_is_an_error_of_the_program() -> None:
    options: Any = {"prioritty": 9}
    with pytest.raises(TypeError, match="'prioritty'"):
        publish_ext(**options)


def test_the_server_and_the_command_line_have_every_option() -> None:
    known = {each.name for each in qos.OPTIONS}
    command: Any = load("publish")
    flags = {flag for option in command.params for flag in option.opts}
    for name, (_, option) in OPTIONS.items():
        assert (option.wire or name) in known
        if option.in_words:
            assert f"--{name.removesuffix('_s')}" in flags
