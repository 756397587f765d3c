"""xmlBlaster's administrative commands that this server does not have, by level.

The documentation of the administration gives the reasons.
"""

from collections.abc import Mapping

from holdfast.bayeux.wire.grammar import Level

OMITTED: Mapping[Level, frozenset[str]] = {
    Level.NODE: frozenset(
        [
            "acceptWrongSenderAddress",
            "checkConsistency",
            "clearLastError",
            "clearLastWarning",
            "dump",
            "exit",
            "freeMem",
            "freeMemStr",
            "gc",
            "lastError",
            "lastWarning",
            "maxClients",
            "maxFreeMem",
            "maxFreeMemStr",
            "maxMem",
            "maxMemStr",
            "numGet",
            "numSysprop",
            "revisionNumber",
            "syspropList",
            "totalMem",
            "totalMemStr",
            "usedMem",
            "usedMemStr",
        ]
    ),
    Level.SUBJECT: frozenset(
        [
            "blockClientAndResetConnections",
            "blockClientLogin",
            "isBlockClientLogin",
            "peekSubjectMessages",
            "subjectQueueEntries",
            "subjectQueueMaxMsgs",
        ]
    ),
    Level.TOPIC: frozenset(
        [
            "creationTimestampStr",
            "numOfCacheEntries",
            "subscribe",
            "topicXml",
            "unSubscribe",
        ]
    ),
    Level.SESSION: frozenset(
        [
            "acceptWrongSenderAddress",
            "addRemoteProperty",
            "blockClientSessionLogin",
            "cbQueueBytesCache",
            "cbQueueMaxMsgsCache",
            "cbQueueNumMsgsCache",
            "clearRemoteProperties",
            "numErase",
            "numGet",
            "numUpdateOneway",
            "pingClientCallbackServer",
            "pingRoundTripDelay",
            "reactivateDispatcherThread",
            "remoteProperties",
            "rootSubscriptions",
            "roundTripDelay",
            "subscriptionDump",
            "unSubscribeByIndex",
        ]
    ),
}
