"""Who may do what: the policy first, then any denial denies, else one grant is needed."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.bayeux.rights import Authorizer, Denial, SecurityPolicy, Vote
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.operation import Operation
from tests.unit.bayeux.harness import Client, Json, Server

GRANT, IGNORE = Vote.GRANT, Vote.IGNORE
NOT_GRANTED = "denied_by_not_granting"


class Policy(SecurityPolicy):
    """Denies one thing on one channel, and notes what it was asked."""

    def __init__(self, what: str = "", channel: str = "", **denial: Any) -> None:
        self._forbidden = (what, channel)
        self._denial = Denial(**denial)
        self.asked: list[tuple[str, str]] = []

    def _ask(self, what: str, channel: str) -> Denial | None:
        self.asked.append((what, channel))
        return self._denial if (what, channel) == self._forbidden else None

    def can_create(self, session: Session, channel: str, message: Json) -> Denial | None:
        return self._ask("create", channel)

    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        return self._ask("subscribe", channel)

    def can_publish(self, session: Session, channel: str, message: Json) -> Denial | None:
        return self._ask("publish", channel)


@dataclass
class Votes:
    """An authorizer of one opinion about some operations; ignores the others."""

    opinion: Vote | Denial
    operations: tuple[Operation, ...] = tuple(Operation)
    asked: list[tuple[Operation, str]] = field(default_factory=list)

    def __call__(
        self, operation: Operation, channel: str, session: Session, message: Json
    ) -> Vote | Denial:
        self.asked.append((operation, channel))
        return self.opinion if operation in self.operations else Vote.IGNORE


def under(policy: SecurityPolicy) -> tuple[Server, Client]:
    server = Server()
    server.bayeux.state.rights.policy = policy
    return server, server.client()


def authorized(*authorizers: tuple[str, Authorizer]) -> tuple[Server, Client]:
    server = Server()
    for pattern, authorizer in authorizers:
        server.bayeux.state.rights.add(pattern, authorizer)
    return server, server.client()


def error(reply: Json) -> str | None:
    return reply.get("error")


# The policy


def test_rights_are_open_until_an_authorizer_or_a_policy_is_set() -> None:
    rights = Server().bayeux.state.rights
    assert rights.are_open
    rights.add("/a", Votes(GRANT))
    assert not rights.are_open
    rights = Server().bayeux.state.rights
    rights.policy = SecurityPolicy()
    assert not rights.are_open


def test_a_policy_that_overrides_nothing_allows_everything() -> None:
    _, client = under(SecurityPolicy())
    assert client.subscribe("/a").reply["successful"]
    assert client.publish("/a", 1).data == [1]
    assert client.publish("/b", 1).reply["successful"]


@pytest.mark.parametrize(
    ("what", "verb", "text"),
    [
        ("create", "publish", "channel_create_denied"),
        ("publish", "publish", "publish_denied"),
        ("create", "subscribe", "create_denied"),
        ("subscribe", "subscribe", "subscribe_denied"),
    ],
)
def test_each_denial_of_a_policy_has_an_error_of_its_own(what: str, verb: str, text: str) -> None:
    server, client = under(Policy(what, "/a"))
    reply = client.publish("/a", 1) if verb == "publish" else client.subscribe("/b", "/a", "/c")
    assert error(reply.reply) == f"403:denied_by_security_policy:{text}"
    assert client.session.subscriptions == set()
    assert len(server.bayeux.state.hub.routes) == 0


def test_the_right_to_create_is_asked_for_last_and_only_if_a_channel_does_not_exist() -> None:
    policy = Policy()
    server, client = under(policy)
    client.subscribe("/a")
    server.client().subscribe("/a")
    client.publish("/a", 1)
    client.publish("/b", 1)
    client.publish("/service/a", 1)
    assert policy.asked == [
        ("subscribe", "/a"),
        ("create", "/a"),
        ("subscribe", "/a"),
        ("publish", "/a"),
        ("publish", "/b"),
        ("create", "/b"),
        ("publish", "/service/a"),
    ]


def test_the_reply_to_a_denied_publish_has_the_reason_advice_and_ext_of_the_policy() -> None:
    denial = {"reason": "too_late", "advice": {"interval": 5}, "ext": {"see": "docs"}}
    _, client = under(Policy("publish", "/a", **denial))
    assert client.publish("/a", 1).reply == {
        "channel": "/a",
        "id": "2",
        "successful": False,
        "error": "403:too_late:publish_denied",
        "advice": {"reconnect": "retry", "interval": 5, "timeout": 30000},
        "ext": {"see": "docs"},
    }


def test_a_refused_publish_reaches_nobody() -> None:
    server, client = under(Policy("publish", "/a"))
    bob = server.client()
    bob.subscribe("/a", "/**")
    client.publish("/a", 1)
    assert bob.publish("/nobody").data == [None]


# Authorizers


def test_channels_without_authorizers_are_open() -> None:
    _, client = authorized(("/a", Votes(IGNORE)))
    assert client.publish("/b", 1).reply["successful"]
    assert client.subscribe("/b").reply["successful"]


@pytest.mark.parametrize(
    ("votes", "reason"),
    [
        ([GRANT], None),
        ([IGNORE], NOT_GRANTED),
        ([IGNORE, GRANT], None),
        ([GRANT, IGNORE], None),
        ([IGNORE, IGNORE], NOT_GRANTED),
        ([GRANT, Denial("no")], "no"),
        ([Denial("no"), GRANT], "no"),
    ],
    ids=str,
)
def test_one_grant_is_needed_and_one_denial_denies(
    votes: list[Vote | Denial], reason: str | None
) -> None:
    _, client = authorized(*(("/a", Votes(vote)) for vote in votes))
    publish = None if reason is None else f"403:{reason}:publish_denied"
    subscribe = None if reason is None else f"403:{reason}:subscribe_denied"
    assert error(client.publish("/a", 1).replies[0]) == publish
    assert error(client.subscribe("/a").reply) == subscribe


def test_the_policy_comes_before_the_authorizers() -> None:
    votes = Votes(GRANT)
    server, client = under(Policy("publish", "/a"))
    server.bayeux.state.rights.add("/a", votes)
    assert error(client.publish("/a", 1).reply) == "403:denied_by_security_policy:publish_denied"
    assert votes.asked == []


@pytest.mark.parametrize("pattern", ["/a/b", "/a/*", "/a/**", "/**"])
def test_an_authorizer_is_asked_about_every_channel_of_its_pattern(pattern: str) -> None:
    votes = Votes(IGNORE)
    _, client = authorized((pattern, votes))
    assert error(client.publish("/a/b", 1).reply) == f"403:{NOT_GRANTED}:publish_denied"
    assert votes.asked == [(Operation.PUBLISH, "/a/b")]


def test_each_operation_needs_a_grant_of_its_own() -> None:
    _, client = authorized(("/a", Votes(GRANT, (Operation.CREATE, Operation.SUBSCRIBE))))
    assert client.subscribe("/a").reply["successful"]
    assert error(client.publish("/a", 1).reply) == f"403:{NOT_GRANTED}:publish_denied"


def test_services_are_authorized_too() -> None:
    _, client = authorized(("/service/**", Votes(IGNORE)))
    assert error(client.publish("/service/a", 1).reply) == f"403:{NOT_GRANTED}:publish_denied"


# Subscriptions to patterns


@pytest.mark.parametrize("pattern", ["/**", "/secret/**", "/secret/*", "/secret/a"])
@pytest.mark.parametrize("wish", ["/**", "/secret/**", "/secret/*", "/secret/a"])
def test_a_subscription_that_overlaps_the_pattern_of_an_authorizer_needs_its_grant(
    pattern: str, wish: str
) -> None:
    _, client = authorized((pattern, Votes(IGNORE)))
    assert error(client.subscribe(wish).reply) == f"403:{NOT_GRANTED}:subscribe_denied"


def test_a_pattern_is_allowed_if_all_authorizers_within_it_grant() -> None:
    _, client = authorized(("/secret/**", Votes(GRANT)), ("/other/*", Votes(GRANT)))
    assert client.subscribe("/**").reply["successful"]


def test_a_pattern_is_refused_if_one_authorizer_within_it_does_not_grant() -> None:
    _, client = authorized(("/secret/**", Votes(GRANT)), ("/other/*", Votes(IGNORE)))
    assert error(client.subscribe("/**").reply) == f"403:{NOT_GRANTED}:subscribe_denied"


def test_a_denial_within_a_pattern_denies_the_whole_pattern() -> None:
    _, client = authorized(("/**", Votes(GRANT)), ("/secret/*", Votes(Denial("no"))))
    assert error(client.subscribe("/**").reply) == "403:no:subscribe_denied"
    assert client.subscribe("/open/**").reply["successful"]


def test_a_grant_within_a_pattern_does_not_grant_the_whole_pattern() -> None:
    _, client = authorized(("/**", Votes(IGNORE)), ("/chat/**", Votes(GRANT)))
    assert error(client.subscribe("/**").reply) == f"403:{NOT_GRANTED}:subscribe_denied"
    assert client.subscribe("/chat/**").reply["successful"]


def test_an_authorizer_is_not_asked_about_patterns_beside_its_own() -> None:
    votes = Votes(IGNORE)
    _, client = authorized(("/secret/**", votes))
    assert client.subscribe("/open/**", "/secret", "/*").reply["successful"]
    assert votes.asked == []
