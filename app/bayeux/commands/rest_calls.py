"""The REST calls that do what xmlBlaster's other commands did."""

from enum import Enum
from urllib.parse import quote


class Level(Enum):
    """The kind of a command's target."""

    NODE = "node"
    SUBJECT = "subject"
    SESSION = "session"
    TOPIC = "topic"


# {0} is the target; a call without names is for all other commands of its level.
CALLS = (
    (Level.NODE, "aliveCallbackClients clientList clients numClients sessionList", "GET /sessions"),
    (Level.NODE, "numTopics topicList topics", "GET /topics"),
    (Level.NODE, "numSubscriptions subscriptionList subscriptions", "GET /channels"),
    (Level.NODE, "numPublish numUpdate", "GET /figures"),
    (Level.NODE, "", "GET /about"),
    (Level.SUBJECT, "peekSubjectMessages subjectQueueEntries", "GET /subjects/{0}/queue"),
    (Level.SUBJECT, "", "GET /sessions?prefix={0}/"),
    (
        Level.SESSION,
        "callbackQueueEntries cbQueueEntries peekCallbackMessages",
        "GET /sessions/{0}/queue",
    ),
    (Level.SESSION, "clearCallbackQueue", "DELETE /sessions/{0}/queue"),
    (Level.SESSION, "", "GET /sessions/{0}"),
    (Level.TOPIC, "erase eraseTopic", "DELETE /topic?channel={0}"),
    (Level.TOPIC, "historyQueueEntries peekHistoryMessages", "GET /topic/history?channel={0}"),
    (Level.TOPIC, "subscribers", "GET /sessions?channel={0}"),
    (Level.TOPIC, "dispatcherActive", "PUT or DELETE /held-channels"),
    (Level.TOPIC, "", "GET /topic?channel={0}"),
)


def rest_call(level: Level, target: str, name: str) -> str:
    """Return the REST call to use instead of the command of this name."""
    fit = (call for each, names, call in CALLS if each is level and name in names.split())
    (others,) = (call for each, names, call in CALLS if each is level and not names)
    return next(fit, others).format(quote(target))
