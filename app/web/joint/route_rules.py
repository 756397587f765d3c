"""What each route of the administration does with several shards: the table of it."""

from collections.abc import Mapping
from functools import partial
from operator import itemgetter
from typing import Final

from holdfast.delivery.basics.ranking import MOST as _MOST_NAMES
from holdfast.web.admin.handlers import Ask
from holdfast.web.joint import sums
from holdfast.web.joint.asking import ROUTE, SWEEP_S, Json
from holdfast.web.joint.hearing import Heard
from holdfast.web.joint.importing import Imported
from holdfast.web.joint.lists import AS_THEY_ARE, Combine, Order, by_name, every_item
from holdfast.web.joint.past_rows import PastRule, top
from holdfast.web.joint.readings import figures, now
from holdfast.web.joint.readings import shards as rows_of
from holdfast.web.joint.rules import (
    All,
    Exported,
    Holder,
    Joined,
    One,
    Paged,
    Parts,
    Ranked,
    Rule,
    Same,
    Sweep,
)

_MOST = 100
# The limit of a list that has none.
_WHOLE = 1 << 31


def _now(found: Heard, limit: int) -> Json:
    # Its lists are cut when they are joined.
    return now(found.answers, found.missing, limit)


def _shards(found: Heard, _: int) -> Json:
    rows = {shard: each["items"] for shard, each in found.answers.items()}
    return {"items": rows_of(rows, found.missing)}


def _history(found: Heard, limit: int) -> Json:
    """Return the messages that channels keep, as one shard does: by channel, the newest first."""
    kept = sorted(
        every_item(found.bodies), key=lambda item: (item["channel"], -_number_of(item["id"]))
    )
    return {"items": kept[:limit]}


def _session(ask: Ask) -> Ask:
    """Return what reads the session that this is about."""
    key = {name: ask.given[name] for name in ("subject", "number")}
    return Ask(ROUTE["session"], key, ask.who)


def _topic(ask: Ask) -> Ask:
    return Ask(ROUTE["topic"], {"channel": ask.given["channel"]}, ask.who)


def _kind(group: Json) -> object:
    """Return what a group of letters has in common. Several reply channels have one fingerprint."""
    return group["fingerprint"] or (group["channel"], group["code"])


def _number_of(id: str) -> int:
    return int(id.rpartition("-")[2])


def _pair(cursor: str) -> tuple[int, ...]:
    return tuple(int(each) for each in cursor.split("-"))


def _text(place: tuple[int, int]) -> str:
    return f"{place[0]}-{place[1]}"


def _sums(*names: str) -> Combine:
    return lambda found: sums.merged(found, names)


def _of_channel(found: list[Json]) -> Json:
    """Return how a channel is held in all shards, and whether the store of any lacks it."""
    return {**found[0], "unstored": any(each["unstored"] for each in found)}


_by_id = partial(Order, place=itemgetter("id"), is_latest_first=True, name="id")
_BY_STREAM_ID: Final = Order(
    place=lambda item: _pair(item["id"]), read=_pair, write=_text, is_latest_first=True, name="id"
)
_OF_SESSION: Final = Holder(_session)

# By the names of the methods that answer.
RULES: Final[Mapping[str, Rule | Same]] = {
    # The server.
    "about": One(),
    "figures": All(figures),
    "past": PastRule(),
    "top": Joined(top, 20, _MOST_NAMES),
    "now": Joined(_now, 10, _MOST),
    "now_tables": Same(),
    "shards": Joined(_shards),
    "description": Same(),
    "pipeline_result": One(0),
    "pipeline_results": One(0),
    "audit": Paged(_BY_STREAM_ID, edit=sums.once),
    "upgrade": All(sums.upgrade),
    "hosts": Same(),
    "drain_host": Same(),
    "uncordon_host": Same(),
    "finish_upgrade": All(sums.upgrade, SWEEP_S),
    # Commands name one session, one subject or one topic.
    "question": Holder(),
    "command": Holder(),
    # Channels.
    "channels": Paged(by_name("name", sums.channel)),
    "held_channels": Paged(by_name("channel", sums.held_channel), _WHOLE),
    "hold_channel": All(_of_channel),
    "release": All(_of_channel),
    "topics": Paged(by_name("channel")),
    "topic": Holder(),
    "topic_history": Joined(_history, 20),
    "erase_topic": Holder(_topic),
    # Sessions and queues.
    "sessions": Paged(by_name("key"), names_shard=True),
    "end_sessions": Sweep(500, "ended", _sums("matched", "entries", "ended")),
    "session": _OF_SESSION,
    "end_session": _OF_SESSION,
    "peek": _OF_SESSION,
    "clear": _OF_SESSION,
    "hold": _OF_SESSION,
    "resume": _OF_SESSION,
    "subjects": Paged(by_name("subject")),
    "subject_queue": Paged(AS_THEY_ARE),
    "clear_subject": All(_sums("discarded")),
    "readers": Paged(by_name("id")),
    "webhooks": Paged(by_name("name")),
    "work_queues": Paged(by_name("channel")),
    "work_queue": Paged(AS_THEY_ARE),
    "work_receivers": Paged(by_name("key")),
    "clear_work_queue": All(_sums("discarded")),
    # Messages.
    "trace": Parts(sums.trace),
    "table_steps": One(0),
    "delayed": Paged(
        Order(
            place=lambda item: (item["due"], _number_of(item["id"])),
            read=_pair,
            write=_text,
            name="id",
        )
    ),
    "cancel_delayed": Holder(),
    # Dead letters. Shards give them ids that no other gives.
    "letters": Paged(_by_id()),
    "letter": Holder(),
    "groups": Ranked(_kind, "count", sums.group, 50),
    "remark": All(partial(max, key=itemgetter("at"))),
    "export": Exported(),
    "import_": Imported(),
    "purge": All(_sums("matched", "purged"), SWEEP_S),
    "replays": Paged(_by_id(combine=sums.replay)),
    "replay_start": All(sums.replay, SWEEP_S, begins=True),
    "replay": All(sums.replay),
    "replay_cancel": All(sums.replay),
}
