"""Divisions that are broken on purpose, to see that seeds find it."""

import secrets
from contextlib import ExitStack
from typing import Any

from holdfast.cluster.rows import OthersRows
from holdfast.offline import reshard
from holdfast.offline.moving_letters import LETTERS
from holdfast.offline.moving_requests import REQUESTS, _Requests
from holdfast.offline.tenure import Tenure
from holdfast.store.format.deployment import Deployment, Origin
from tests.simulation.breaking import by_name, nothing, replace


def nothing_is_expected_of_who_has_told_nothing(stack: ExitStack) -> None:
    replace(stack, OthersRows, "_learn_whether_told", nothing)


def new_shards_are_another_deployment_if_it_was_killed(stack: ExitStack) -> None:
    fence = Tenure.fence

    async def anew(self: Tenure, keys: Any, shard: int, _: Origin) -> None:
        origin = Origin(Deployment.proposed(None), secrets.token_hex(8))
        await fence(self, keys, shard, origin)

    replace(stack, Tenure, "fence", anew)


def who_may_answer_is_not_divided(stack: ExitStack) -> None:
    replace(stack, _Requests, "_know", nothing)


def requests_are_left_behind(stack: ExitStack) -> None:
    steps = tuple(each for each in reshard.STEPS if each not in REQUESTS)
    replace(stack, reshard, "STEPS", steps)


def keys_are_left_behind(stack: ExitStack) -> None:
    steps = tuple(each for each in reshard.STEPS if each not in LETTERS)
    replace(stack, reshard, "STEPS", steps)


BUILDS_OF_DIVISIONS = by_name(
    nothing_is_expected_of_who_has_told_nothing,
    new_shards_are_another_deployment_if_it_was_killed,
    who_may_answer_is_not_divided,
    requests_are_left_behind,
    keys_are_left_behind,
)
