"""Prints messages as a client receives them: for people, as lines for programs, or as JSON."""

import sys
from datetime import datetime

from holdfast.cli.output import Json, brief, console, is_terminal, print_json, visible
from holdfast.client import Message, Refuse
from holdfast.delivery.basics.json_text import to_json

_OK = "OK"


def print_received(message: Message, refusal: Refuse | None, *, as_json: bool) -> None:
    """Print a message with the verdict on it, at once."""
    verdict = _OK if refusal is None else refusal.code
    if as_json:
        print_json(_fields_of(message) | {"verdict": verdict}, is_line=True)
    elif is_terminal():
        from rich.text import Text

        time_of_day = f"{_arrival(message):%H:%M:%S} "
        data = f" {visible(brief(message.data))} "
        style = "dim" if refusal is None else "red"
        words = ((time_of_day, "dim"), (visible(message.channel), "bold"), data, (verdict, style))
        console().print(Text.assemble(*words), soft_wrap=True)
    else:
        at = _arrival(message).isoformat(" ", "milliseconds")
        columns = (at, message.channel, message.sender, to_json(message.data).decode())
        sys.stdout.write("\t".join(map(visible, columns)) + "\n")
    sys.stdout.flush()


def _arrival(message: Message) -> datetime:
    """Return when the server received the message, or else the time."""
    ns = message.timestamp_ns
    return (datetime.now() if ns is None else datetime.fromtimestamp(ns / 1e9)).astimezone()


def _fields_of(message: Message) -> Json:
    ns = message.timestamp_ns
    return {
        "id": message.id,
        "channel": message.channel,
        "published": None if ns is None else ns // 1_000_000,
        "sender": message.sender,
        "priority": message.priority,
        "properties": message.properties,
        "redelivered": message.redelivered,
        "data": message.data,
    }
