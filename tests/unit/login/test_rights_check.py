"""`explain` says what the server does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.bayeux.wire.operation import Operation
from holdfast.login.failures import Unusable
from holdfast.login.rights_check import explain
from holdfast.login.rights_file import read_rights
from holdfast.login.rules import RuleGrants, Rules
from tests.unit.bayeux.test_what_errors_tell import KNOWN, UNKNOWN, WAYS, house

ADA = Login("ada", LoginMethod.PASSWORD)
SERVICES = """
[[rule]]
who = ["*"]
may = ["publish"]
channels = ["/service/rooms/**"]
"""
RULE = """
[[rule]]
who = ["*"]
{verb} = {operations}
channels = ["/rooms/{channels}"]
"""
# `create` is needed with other operations only.
EXPLAINED = [
    *("subscribe", "publish", "address", "request", "subscribe with a history", "replay"),
    *("erase", "see who is there", "watch who is there"),
]
rules = st.builds(
    lambda verb, operations, channels: RULE.format(
        verb=verb, operations=[each.value for each in operations], channels=channels
    ),
    st.sampled_from(["may", "may", "may_not"]),
    st.lists(st.sampled_from(Operation), min_size=1, unique=True),
    st.sampled_from(["**", "*", "known", "unknown", "other"]),
)


@given(st.sampled_from(EXPLAINED), st.lists(rules, max_size=4).map("".join))
def test_the_server_refuses_what_is_explained_as_denied_and_nothing_else(
    way: str, text: str
) -> None:
    rights = read_rights((SERVICES + text).encode())
    operation, message_for = WAYS[way]
    server = house()
    client = server.client(ext={"request": True})
    client.session.identity.login = ADA
    client.session.identity.grants = RuleGrants(Rules(rights.rules), ADA)
    for name, exists in ((KNOWN, True), (UNKNOWN, False)):
        asked = client.send(message_for(client, name))
        server.turn()
        errors = [str(each.get("error")) for each in asked.elements]
        is_refused = any(each.startswith("403:denied_by_rights") for each in errors)
        answers = explain(rights, ADA, operation, name)
        if exists:
            answers = [each for each in answers if each.right is not Operation.CREATE]
        assert is_refused is not all(each.is_allowed for each in answers), (name, errors, answers)


@pytest.mark.parametrize("name", ["", "no channel", "/a//b", "/a/*/b"])
def test_what_is_no_channel_cannot_be_explained(name: str) -> None:
    with pytest.raises(Unusable, match="neither a channel nor a pattern"):
        explain(read_rights(b""), ADA, Operation.PUBLISH, name)
