"""The table of error codes against xmlBlaster's list of them."""

import re

import pytest

from holdfast.delivery.basics.error_codes import CODES, ErrorCode, find

# In xmlBlaster's order.
LISTED = """
    legacy internal internal.unknown internal.nullpointer internal.illegalArgument
    internal.interrupted internal.notImplemented internal.connectionFailure
    internal.illegalState internal.disconnect internal.subscribe internal.unSubscribe
    internal.publish internal.publishArr internal.erase internal.get internal.stop resource
    resource.maintenance resource.outOfMemory resource.tooManyThreads resource.exhaust
    resource.callbackServer.creation resource.overflow.queue.bytes
    resource.overflow.queue.entries resource.unavailable resource.temporary.unavailable
    resource.db.unavailable resource.db.block resource.db.unknown resource.admin.unavailable
    resource.configuration resource.configuration.connect resource.configuration.pluginFailed
    resource.configuration.xml resource.configuration.sslSocket resource.configuration.address
    resource.fileIO resource.fileIO.fileLost resource.cluster.notAvailable
    resource.cluster.circularLoop communication communication.resource.temporary.unavailable
    communication.noConnection communication.timeout communication.responseTimeout
    communication.forceAsync communication.noConnection.serverDeny
    communication.noConnection.callbackServer.notavailable communication.noConnection.polling
    communication.noConnection.dead communication.user.holdback user user.update.holdback
    user.update.deadMessage user.update.error user.update.internalError
    user.update.illegalArgument user.update.security.authentication.accessDenied
    user.wrongApiUsage user.configuration user.version user.configuration.maxSession
    user.configuration.connectNoPubSess user.configuration.identicalClient user.security
    user.security.authentication user.security.authentication.accessDenied
    user.security.authentication.accessDenied.unknownLoginName
    user.security.authentication.accessDenied.wrongPassword
    user.security.authentication.inactive user.security.authentication.expired
    user.security.authentication.illegalArgument user.security.authentication.illegalDeviceId
    user.security.authentication.illegalDeviceType user.security.authentication.nfc_deviceType
    user.security.authentication.nfc_notRegistered user.security.authentication.nfc_imei
    user.security.authorization.notAuthorized user.illegalArgument user.maxSizeExceed
    user.publish.readonly user.subscribe.id user.subscribe.noCallback user.oid.unknown
    user.jdbc.invalid user.connect user.connect.multiple user.notConnected user.publish
    user.ptp.unknownSession user.ptp.unknownDestination user.ptp.unknownDestinationSession
    user.ptp.denied user.message.invalid user.query.invalid user.query.type.invalid
    user.admin.invalid user.clientCode
"""
ALL = LISTED.split()


def code(text: str) -> ErrorCode:
    found = find(text)
    assert found is not None
    return found


# The codes that xmlBlaster does not have.
OURS = {"communication.lateReply", "resource.overflow.log"}


def test_the_codes_are_those_of_xmlblaster_and_two_more() -> None:
    assert len(ALL) == 99
    assert [text for text in CODES if text not in OURS] == ALL
    assert set(CODES) == OURS.union(ALL)


def test_a_code_is_found_by_its_name() -> None:
    for text in ALL:
        found = code(text)
        assert found.text == text
        assert found.family == text.split(".")[0]
        assert found is find(text)


@pytest.mark.parametrize("text", ["", "user.", "internal.own", "USER", "user.update.holdback "])
def test_an_unknown_code_is_not_found(text: str) -> None:
    assert find(text) is None


def test_every_code_has_a_meaning_of_its_own() -> None:
    meanings = [row.meaning for row in CODES.values()]
    assert len(set(meanings)) == len(meanings)
    assert all(re.fullmatch(r"[A-Z][^|`]+[^.]", meaning) for meaning in meanings)


def test_a_code_is_of_the_type_of_its_parents_and_itself() -> None:
    denied = code("user.security.authentication.accessDenied.wrongPassword")
    assert denied.is_type_of("user")
    assert denied.is_type_of("user.security.authentication")
    assert denied.is_type_of(denied.text)


def test_a_code_has_no_type_that_is_not_a_parent() -> None:
    assert not code("user.update.error").is_type_of("user.up")
    assert not code("user.ptp.unknownDestinationSession").is_type_of("user.ptp.unknownDestination")
    assert not code("user.publish").is_type_of("user.publish.readonly")
    assert not code("user.update.security.authentication.accessDenied").is_type_of("user.security")
