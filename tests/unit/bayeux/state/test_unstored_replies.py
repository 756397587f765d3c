"""The replies of a session that wait for the store."""

import pytest

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.unstored_replies import (
    begin_publish,
    begin_reply,
    end_publish,
    end_reply,
    owes_reply,
    publishes_stored,
    unstored_publishes,
    unstored_replies,
    when_publishes_stored,
)
from tests.unit.bayeux.harness import Server


@pytest.fixture
def session() -> Session:
    return Server().client().session


def test_a_session_owes_a_reply_while_one_of_any_kind_waits(session: Session) -> None:
    assert not owes_reply(session)
    begin_publish(session)
    begin_reply(session)
    assert (unstored_publishes(session), unstored_replies(session)) == (1, 1)
    end_publish(session)
    assert owes_reply(session)
    end_reply(session)
    assert not owes_reply(session)


def test_a_step_waits_for_all_publishes_but_for_no_other_reply(session: Session) -> None:
    seen: list[float] = []
    begin_reply(session)
    begin_publish(session)
    begin_publish(session)
    when_publishes_stored(session, seen.append)
    end_publish(session)
    publishes_stored(session, 1.0)
    assert seen == []
    end_publish(session)
    publishes_stored(session, 2.0)
    assert seen == [2.0]
    publishes_stored(session, 3.0)
    assert seen == [2.0]


def test_a_session_keeps_no_record_when_nothing_waits(session: Session) -> None:
    begin_reply(session)
    begin_publish(session)
    end_reply(session)
    end_publish(session)
    publishes_stored(session, 1.0)
    assert not session.records
