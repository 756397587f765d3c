"""Routes: from a channel to its receivers, with cached answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.channels import Channel, Channels, covers
from holdfast.delivery.routing import routes as module
from holdfast.delivery.routing.routes import Routes
from holdfast.delivery.routing.selections import Candidate, Filter, Selection

CHANNELS = Channels()


def channel(name: str) -> Channel:
    found = CHANNELS.get(name)
    assert found is not None
    return found


def receivers(routes: Routes[str], name: str) -> tuple[str, ...]:
    return routes.receivers(channel(name))


def test_a_channel_without_subscribers_has_no_receivers() -> None:
    assert receivers(Routes(), "/foo") == ()


def test_the_receivers_of_a_channel_are_those_of_every_matching_pattern() -> None:
    routes: Routes[str] = Routes()
    for pattern in ("/a/b", "/a/*", "/a/**", "/**", "/b", "/*", "/a/b/c"):
        routes.add(channel(pattern), pattern)
    assert receivers(routes, "/a/b") == ("/a/b", "/a/*", "/a/**", "/**")


def test_a_receiver_is_found_once_however_many_of_its_patterns_match() -> None:
    routes: Routes[str] = Routes()
    for pattern in ("/a/b", "/a/*", "/**"):
        routes.add(channel(pattern), "alice")
    assert receivers(routes, "/a/b") == ("alice",)


def test_receivers_of_one_pattern_come_in_the_order_of_their_subscriptions() -> None:
    routes: Routes[str] = Routes()
    for name in ("carol", "alice", "bob", "carol"):
        routes.add(channel("/a"), name)
    assert receivers(routes, "/a") == ("carol", "alice", "bob")


@pytest.mark.parametrize("pattern", ["/a/b", "/a/*", "/a/**", "/**"])
def test_a_new_subscription_counts_at_once(pattern: str) -> None:
    routes: Routes[str] = Routes()
    assert receivers(routes, "/a/b") == ()
    routes.add(channel(pattern), "alice")
    assert receivers(routes, "/a/b") == ("alice",)


@pytest.mark.parametrize("pattern", ["/a/b", "/a/*", "/a/**", "/**"])
def test_a_removed_subscription_counts_no_longer(pattern: str) -> None:
    routes: Routes[str] = Routes()
    routes.add(channel(pattern), "alice")
    routes.add(channel(pattern), "bob")
    assert receivers(routes, "/a/b") == ("alice", "bob")
    routes.remove(pattern, "alice")
    assert receivers(routes, "/a/b") == ("bob",)
    routes.remove(pattern, "bob")
    assert receivers(routes, "/a/b") == ()


def test_removing_an_absent_subscription_changes_nothing() -> None:
    routes: Routes[str] = Routes()
    routes.add(channel("/a"), "alice")
    routes.remove("/a", "bob")
    routes.remove("/b", "alice")
    assert receivers(routes, "/a") == ("alice",)


def test_a_pattern_is_known_as_long_as_somebody_subscribes_to_it() -> None:
    routes: Routes[str] = Routes()
    assert "/a" not in routes
    routes.add(channel("/a"), "alice")
    routes.add(channel("/a"), "bob")
    routes.add(channel("/b"), "bob")
    assert len(routes) == 2
    routes.remove("/a", "alice")
    assert "/a" in routes
    routes.remove("/a", "bob")
    assert "/a" not in routes
    assert len(routes) == 1


def test_a_cached_answer_stays_while_only_other_channels_change() -> None:
    routes: Routes[str] = Routes()
    routes.add(channel("/a"), "alice")
    answer = receivers(routes, "/a")
    routes.add(channel("/b"), "bob")
    routes.remove("/b", "bob")
    assert receivers(routes, "/a") is answer


def test_cached_answers_are_forgotten_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_CACHED_CHANNELS", 3)
    routes: Routes[str] = Routes()
    routes.add(channel("/a"), "alice")
    answer = receivers(routes, "/a")
    receivers(routes, "/b")
    receivers(routes, "/c")
    assert receivers(routes, "/a") is answer
    receivers(routes, "/d")
    assert receivers(routes, "/a") == answer
    assert receivers(routes, "/a") is not answer


def test_cached_answers_are_forgotten_when_they_hold_too_many_receivers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_CACHED_RECEIVERS", 4)
    routes: Routes[str] = Routes()
    for name in ("alice", "bob"):
        for pattern in ("/a", "/b", "/c", "/d"):
            routes.add(channel(pattern), name)
    answer = receivers(routes, "/a")
    # An answer that a change removes makes room again.
    for _ in range(5):
        routes.add(channel("/b"), "bob")
        receivers(routes, "/b")
    assert receivers(routes, "/a") is answer
    receivers(routes, "/c")
    assert receivers(routes, "/a") is not answer


def test_each_subscription_is_counted_once() -> None:
    routes: Routes[str] = Routes()
    for receiver in ("alice", "bob", "alice"):
        routes.add(channel("/a"), receiver)
    routes.add(channel("/a/*"), "alice")
    assert routes.count == 3
    for receiver in ("alice", "alice", "eve"):
        routes.remove("/a", receiver)
    assert routes.count == 2


# Subscriptions that select messages


def selecting(routes: Routes[str], name: str, data: object) -> list[str]:
    candidate = Candidate(channel=name, data=data)
    return list(routes.selecting_receivers(channel(name), candidate))


PATTERNS = st.sampled_from(["/a/b", "/a/*", "/**", "/a/c"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove"]),
        PATTERNS,
        st.sampled_from(["alice", "bob", "carol"]),
        st.sampled_from([None, 0, 1, 2]),
    ),
    max_size=20,
)


@pytest.mark.slow
@given(steps=STEPS)
def test_a_message_reaches_exactly_the_receivers_whose_subscriptions_select_it(
    steps: list[tuple[str, str, str, int | None]],
) -> None:
    routes: Routes[str] = Routes()
    # The least value that each subscription selects; None: it selects everything.
    model: dict[tuple[str, str], int | None] = {}
    for verb, pattern, who, least in steps:
        if verb == "add":
            model[pattern, who] = least
            filter = None if least is None else Filter(f"data >= {least}")
            selection = None if filter is None else Selection(routes.filters.shared(filter), "")
            routes.add(channel(pattern), who, selection)
        else:
            model.pop((pattern, who), None)
            routes.remove(pattern, who)
        for name in ("/a/b", "/a/c"):
            for data in (0, 1):
                wanted = {
                    who
                    for (pattern, who), least in model.items()
                    if covers(pattern, name) and (least is None or data >= least)
                }
                found = selecting(routes, name, data)
                assert set(found) == wanted
                assert len(found) == len(wanted)
        bounds = [least for least in model.values() if least is not None]
        assert (len(routes.filters), routes.selecting) == (len(set(bounds)), len(bounds))


def test_receivers_with_the_same_filter_share_it() -> None:
    routes: Routes[str] = Routes()
    shared = [routes.filters.shared(Filter("data > 5"))]
    for who in ("alice", "bob", "carol"):
        routes.add(channel("/a"), who, Selection(shared[-1], ""))
        shared.append(routes.filters.shared(Filter("data > 5")))
    assert len(set(map(id, shared))) == 1
    assert shared[0].uses == 3


def test_each_filter_on_a_channel_is_listed_once_while_a_subscription_has_it() -> None:
    routes: Routes[str] = Routes()
    one, other = Filter("data > 1"), Filter("data > 2")
    for receiver, filter in (("joe", one), ("ann", one), ("bob", other)):
        routes.add(channel("/a"), receiver, Selection(filter, ""))
    assert routes.filters_on(channel("/a")) == [one, other]
    routes.remove("/a", "bob")
    assert routes.filters_on(channel("/a")) == [one]
    routes.add(channel("/**"), "eve")
    routes.remove("/a", "joe")
    routes.remove("/a", "ann")
    assert list(routes.filters_on(channel("/a"))) == []
