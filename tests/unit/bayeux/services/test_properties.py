"""The properties of each level that can be read, set and run, and those of xmlBlaster alone."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.bayeux.services.commands import understand
from holdfast.bayeux.services.omissions import OMITTED
from holdfast.bayeux.services.properties import (
    NODE,
    SESSION,
    SUBJECT,
    TOPIC,
    Action,
    Listing,
    Property,
    Reading,
    Setting,
    ValueForm,
)
from holdfast.bayeux.wire.grammar import CommandRefused, Level
from holdfast.delivery.topics.configured import TopicConfig
from tests.unit.bayeux.harness import server_of
from tests.unit.bayeux.operated_server import ask, receiver

TABLES: Mapping[Level, Mapping[str, Property[Any]]] = {
    Level.NODE: NODE,
    Level.SUBJECT: SUBJECT,
    Level.SESSION: SESSION,
    Level.TOPIC: TOPIC,
}
PLACES = {
    Level.NODE: "?",
    Level.SUBJECT: "client/joe/?",
    Level.SESSION: "client/joe/1/?",
    Level.TOPIC: "topic/t/a/?",
}
# The properties of xmlBlaster, by the names in its own interfaces.
XMLBLASTERS = {
    Level.NODE: """
        acceptWrongSenderAddress aliveCallbackClients checkConsistency clearLastError
        clearLastWarning clientList clients dump exit freeMem freeMemStr gc hostname instanceId
        lastError lastWarning maxClients maxFreeMem maxFreeMemStr maxMem maxMemStr nodeId nodeList
        numClients numGet numNodes numPublish numSubscriptions numSysprop numTopics numUpdate port
        revisionNumber runlevel serverTimestamp serverTimestampMillis startupDate subscriptionList
        subscriptions syspropList topicList topics totalMem totalMemStr uptime usedMem usedMemStr
        version
        """,
    Level.SUBJECT: """
        blockClientAndResetConnections blockClientLogin creationDate isBlockClientLogin killClient
        maxSessions numSessions numUpdate peekSubjectMessages sessionList sessions
        subjectQueueEntries subjectQueueMaxMsgs subjectQueueNumMsgs uptime
        """,
    Level.SESSION: """
        acceptWrongSenderAddress addRemoteProperty aliveSinceDate blockClientSessionLogin
        callbackQueueEntries cbQueueBytes cbQueueBytesCache cbQueueMaxMsgs cbQueueMaxMsgsCache
        cbQueueNumMsgs cbQueueNumMsgsCache clearCallbackQueue clearLastCallbackException
        clearRemoteProperties connectionState disconnectClientKeepSession dispatcherActive id
        isCallbackConfigured isPersistent isPtpAllowed isStalled killSession lastCallbackException
        loginDate loginName maxSessions numCallbackExceptions numErase numGet numPublish
        numSubscribe numUnSubscribe numUpdate numUpdateOneway peekCallbackMessages
        pingClientCallbackServer pingRoundTripDelay pollingSinceDate publicSessionId qos
        reactivateDispatcherThread refreshSession remoteProperties removeFromCallbackQueue
        rootSubscriptions roundTripDelay sessionTimeout sessionTimeoutExpireDate subscribe
        subscribedTopics subscriptionDump subscriptions unSubscribe unSubscribeByIndex uptime
        """,
    Level.TOPIC: """
        creationTimestampStr numOfCacheEntries numOfHistoryEntries numSubscribers stateStr subscribe
        subscribers topicXml unSubscribe uniqueKey
        """,
}
EVERY_NAME = [(level, name) for level, names in XMLBLASTERS.items() for name in names.split()]


@pytest.mark.slow
@pytest.mark.parametrize("level", Level)
def test_every_property_answers_its_command(level: Level) -> None:
    arguments = {
        ValueForm.COUNT: "=2",
        ValueForm.QUERY: "=maxEntries=2",
        ValueForm.CHANNEL: "=/a",
        ValueForm.BOOLEAN: "=true",
    }
    for name, found in TABLES[level].items():
        takes = found.takes if isinstance(found, Action | Listing) else ValueForm.NOTHING
        server = server_of()
        receiver(server, "joe/1")
        known = server.bayeux.state.topics
        known.configure(known.draft("/t/a", TopicConfig(destroy_delay_ms=-1)))
        text = PLACES[level] + name + arguments.get(takes, "")
        assert ask(server, text).command.endswith(name)


def test_every_property_of_xmlblaster_is_either_supported_or_listed_as_omitted() -> None:
    for level, name in EVERY_NAME:
        assert (name in TABLES[level]) is not (name in OMITTED[level]), name


@pytest.mark.parametrize("level", Level)
def test_an_omitted_property_is_refused_as_not_implemented(level: Level) -> None:
    for name in OMITTED[level]:
        for text in (name, name + "=1"):
            with pytest.raises(CommandRefused) as caught:
                understand(PLACES[level] + text)
            assert caught.value.code == "internal.notImplemented"


def test_property_tables_are_in_alphabetical_order() -> None:
    for table in TABLES.values():
        assert list(table) == sorted(table)


def test_a_topic_is_addressed_by_its_channel() -> None:
    server = server_of()
    known = server.bayeux.state.topics
    known.configure(known.draft("/t/a", TopicConfig(destroy_delay_ms=-1)))
    assert ask(server, "topic/t/a/?state").value == "UNREFERENCED"
    assert ask(server, "topic/t/a?destroyDelay").command == "/node/test/topic/t/a/?destroyDelay"
    assert "/t/a" in ask(server, "?topicList").value.split("\n")
    ask(server, "topic/t/a/?dispatcherActive=false")
    ask(server, "topic/t/a/?dispatcherActive=false")
    assert ask(server, "topic/t/a/?dispatcherActive").value == "false"
    assert server.bayeux.state.guard.is_held("/t/a")
    ask(server, "topic/t/a/?dispatcherActive=true")
    assert not server.bayeux.state.guard.is_held("/t/a")
    ask(server, "topic/t/a/?erase=false")
    server.turn()
    with pytest.raises(CommandRefused, match="no topic has this name"):
        ask(server, "topic/t/a/?state")


# The documentation


def page() -> str:
    return (Path(__file__).parents[4] / "docs" / "administration.md").read_text()


@pytest.mark.parametrize("level", Level)
def test_all_properties_are_in_the_documentation(level: Level) -> None:
    (row,) = re.findall(rf"^\| {level.value} \|(.*)\|(.*)\|(.*)\|$", page(), re.MULTILINE)
    read, put, done = (sorted(re.findall(r"`(\w+)`", cell)) for cell in row)
    table = TABLES[level].items()
    values = (Reading, Setting)
    assert read == [name for name, found in table if isinstance(found, values)]
    assert put == [name for name, found in table if isinstance(found, Setting)]
    assert done == [name for name, found in table if not isinstance(found, values)]


@pytest.mark.parametrize("level", Level)
def test_all_omitted_properties_are_in_the_documentation_with_a_reason(level: Level) -> None:
    rows = re.findall(rf"^\| {level.value} \|([^|]*)\|([^|]*)\|$", page(), re.MULTILINE)
    told = [name for names, _ in rows for name in re.findall(r"`(\w+)`", names)]
    assert sorted(told) == sorted(OMITTED[level])
    assert all(reason.strip() for _, reason in rows)
