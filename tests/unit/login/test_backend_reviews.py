"""Subscriptions about which the backend is asked again are not remembered beyond their session."""

from types import SimpleNamespace
from typing import Any

from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.bayeux.wire.operation import Operation
from holdfast.login.backend.decisions import AskingGrants, Said
from holdfast.login.backend.reviews import Reviews
from holdfast.login.rules import Rules


def session() -> Any:
    grants = AskingGrants(Rules([]), Login("ada", LoginMethod.BACKEND), lambda: 0.0)
    identity = SimpleNamespace(grants=grants)
    return SimpleNamespace(identity=identity, is_gone=False, subscriptions=set())


async def test_sessions_that_have_ended_are_forgotten_long_before_their_decisions_end() -> None:
    questions: Any = SimpleNamespace()
    reviews = Reviews(questions, lambda _: None, lambda: 0.0)
    living = [session() for _ in range(10)]
    asked, said = (Operation.SUBSCRIBE, "/orders/7"), Said(is_allowed=True, ends_at=1e7)
    for each in living:
        # The subscription follows the answer.
        reviews.watch(each, asked, said)
    for _ in range(1000):
        ended = session()
        reviews.watch(ended, asked, said)
        ended.is_gone = True
    assert len(reviews) <= 65
    assert {id(each.session) for each in reviews._doubts} >= {id(each) for each in living}
