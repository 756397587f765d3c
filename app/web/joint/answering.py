"""The administration of all shards."""

from dataclasses import replace

from holdfast.web.admin.handlers import Ask, Handler
from holdfast.web.joint.asking import Shards
from holdfast.web.joint.route_rules import RULES
from holdfast.web.joint.rules import Same


def among(shards: Shards, own: Handler) -> Handler:
    """Return what answers a route for all shards."""
    rule = RULES[own.route.handler]
    if isinstance(rule, Same) and shards.has_own:
        return own

    async def answer(ask: Ask) -> object:
        # What is wrong with it is refused here.
        ask.arguments()
        return await rule.answer(shards, ask) or None

    return replace(own, answering=answer)
