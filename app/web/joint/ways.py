"""What each route of the administration does with several shards: the table of it."""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final

from holdfast.web.admin.handlers import Ask
from holdfast.web.joint import sums
from holdfast.web.joint.asking import ROUTE, SWEEP_S, Answer, Json, NoAnswer, Shards, asking
from holdfast.web.joint.audited import audited
from holdfast.web.joint.hearing import heard
from holdfast.web.joint.importing import Imported
from holdfast.web.joint.lists import AS_THEY_ARE, Order, by_name
from holdfast.web.joint.readings import figures, now
from holdfast.web.joint.readings import shards as rows_of
from holdfast.web.joint.rules import (
    All,
    Begun,
    Exported,
    Holder,
    One,
    Paged,
    Parts,
    Ranked,
    Rule,
    Same,
    Sweep,
    limit_of,
    order_of,
    with_unanswered,
)

_MOST = 100
# The limit of a list that has none.
_WHOLE = 1 << 31


class _Now:
    """The reading of what is stuck: its lists are cut when they are joined."""

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        asked = await shards.ask_all(asking(ask, limit=_MOST))
        found = heard(asked)
        return with_unanswered(found, now(found.answers, _missing(asked), limit_of(ask, 10)))


class _Shards:
    """The workers of all shards."""

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        asked = await shards.ask_all(ask)
        found = heard(asked)
        rows = {shard: each["items"] for shard, each in found.answers.items()}
        return with_unanswered(found, {"items": rows_of(rows, _missing(asked))})


class _Audit:
    """The list of changes."""

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        found = heard(await shards.ask_all(ask))
        order = order_of(ask, _BY_STREAM_ID)
        return with_unanswered(found, audited(found.answers, limit_of(ask, _MOST), order))


class _History:
    """The messages that channels keep: the home of each has them."""

    async def answer(self, shards: Shards, ask: Ask) -> Json:
        found = heard(await shards.ask_all(ask))
        kept = [item for each in found.bodies for item in each["items"]]
        # As one shard answers: by channel, the newest first.
        kept.sort(key=lambda item: (item["channel"], -_number_of(item["id"])))
        return with_unanswered(found, {"items": kept[: limit_of(ask, 20)]})


def _missing(found: Sequence[Answer | NoAnswer]) -> Mapping[int, str]:
    """Return the states of the shards that have not answered."""
    return {
        each.shard: "away" if isinstance(each, NoAnswer) and not each.is_silent else "silent"
        for each in found
        if isinstance(each, NoAnswer) or each.status >= 300
    }


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


def _sums(*names: str) -> Any:  # noqa: ANN401 - what joins answers
    return lambda found: sums.with_sums(found, *names)


def _first(found: Sequence[Json]) -> Json:
    return found[0]


def _latest(field: str) -> Any:  # noqa: ANN401 - what joins answers
    return lambda found: max(found, key=lambda each: each[field])


_by_id = partial(
    Order, place=itemgetter("id"), read=str, write=str, is_latest_first=True, name="id"
)
_BY_STREAM_ID: Final = Order(
    place=lambda item: _pair(item["id"]), read=_pair, write=_text, is_latest_first=True, name="id"
)
_OF_SESSION: Final = Holder(_session)

# By the names of the methods that answer.
RULES: Final[Mapping[str, Rule | Same]] = {
    # The server.
    "about": One(),
    "figures": All(figures),
    "now": _Now(),
    "now_tables": Same(),
    "shards": _Shards(),
    "description": Same(),
    "pipeline_result": One(0),
    "pipeline_results": One(0),
    "audit": _Audit(),
    "upgrade": All(sums.upgrade),
    "finish_upgrade": All(sums.upgrade, SWEEP_S),
    # Commands name one session, one subject or one topic.
    "question": Holder(),
    "command": Holder(),
    # Channels.
    "channels": Paged(by_name("name", sums.channel)),
    "held_channels": Paged(by_name("channel", sums.held_channel), _WHOLE),
    "hold_channel": All(_first),
    "release": All(_first),
    "topics": Paged(by_name("channel")),
    "topic": Holder(),
    "topic_history": _History(),
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
    "remark": All(_latest("at")),
    "export": Exported(),
    "import_": Imported(),
    "purge": All(_sums("matched", "purged"), SWEEP_S),
    "replays": Paged(_by_id(combine=sums.replay)),
    "replay_start": Begun(sums.replay),
    "replay": All(sums.replay),
    "replay_cancel": All(sums.replay),
}
