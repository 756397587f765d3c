"""What becomes of each thing in memory when a process leaves.

docs/building/succession.md shows the table. A test fails for an attribute that is in no row, so
new state has to be thought of here.
"""

from enum import Enum
from typing import Final, NamedTuple

from holdfast.delivery.codec.attributes import BESIDE, FIELDS, OF_RECORDS, Way


class Fate(Enum):
    """How the next process gets something, or why it does without it."""

    WRITTEN = "written"
    # A durable part is in the store at any time.
    STORED = "stored already"
    RECOMPUTED = "recomputed"
    ANSWERED = "finished before"
    ANEW = "begins anew"
    # It consists of parts, or follows from the settings, or knows nothing.
    MADE = "made at the start"


class Row(NamedTuple):
    """Some things in memory that have one fate, and why it is harmless."""

    what: str
    fate: Fate
    why: str
    # Attributes as `Class.attribute`, and classes of records of features as `record.Class`.
    of: tuple[str, ...]


def _of(name: str, attributes: str) -> tuple[str, ...]:
    return tuple(f"{name}.{each}" for each in attributes.split())


# What each message has at the next process: the table of attributes says it.
_FIELDS: Final = {each.name for each in FIELDS if Way.HAND_OVER in each.ways} | BESIDE - {"wire"}
_RECORDS: Final = {each.name for each in OF_RECORDS if each.ways == tuple(Way)}


TABLE: Final = (
    Row(
        "sessions: ids, names, subjects, state",
        Fate.WRITTEN,
        "with the record of those that are not stored",
        (
            *_of("ServerState", "sessions"),
            *_of("Receiver", "key name subject state has_left is_away is_gone takes_messages"),
            *_of("Receiver", "is_durable transport"),
            *_of("Session", "client_id created terms is_resumed is_advised"),
            *_of("Session", "deliver_only broadcast_to_publisher"),
            *_of("Session", "timeout_s interval_s rest_interval_s"),
            *_of("record", "FormerClient ToldTimeout"),
        ),
    ),
    Row(
        "cookies, logins and roles of clients",
        Fate.WRITTEN,
        "a login is checked again by the next process, which may know other rights",
        (
            *_of("Session", "identity"),
            *_of("Identity", "browser browser_of_socket needs_cookie is_of_page login role"),
            *_of("Identity", "warrant newcomer_since first_connect"),
            *_of("Bayeux", "identities"),
        ),
    ),
    Row(
        "proofs of logins, and the sender of a session's last request",
        Fate.ANEW,
        "the next request proves the login again, and counts for its address",
        (*_of("Identity", "proofs proved_by"), *_of("Session", "caller")),
    ),
    Row(
        "what a login grants",
        Fate.RECOMPUTED,
        "by the rules in force; the session is reviewed before it gets anything",
        _of("Identity", "grants"),
    ),
    Row(
        "subscriptions with their options, and those that were lost",
        Fate.WRITTEN,
        "with the record of the session",
        (
            *_of("Receiver", "subscriptions"),
            *_of("ServerState", "subscriptions routes"),
            *_of("record", "SubscriptionDetails _Silence"),
        ),
    ),
    Row(
        "the queue of a session, in its order",
        Fate.WRITTEN,
        "messages that the store has are named, others are written once for all queues",
        (
            *_of("Receiver", "queue"),
            *_of("CallbackQueue", "new"),
            *_of("InFlight", "_fresh _handed returned is_mixed"),
            *_of("Entry", "message"),
        ),
    ),
    Row(
        "how far entries are: numbers, batches, attempts, verdicts that are due",
        Fate.WRITTEN,
        "acks and verdicts that come to the next process mean what they meant",
        (
            *_of("InFlight", "batch seq _last_seq _heard _former_seq _repeats window has_pending"),
            *_of("InFlight", "is_restored"),
            *_of("Entry", "seq place batch until attempts redelivered handed_at is_in_flight due"),
            *_of("Entry", "is_pending was_alone trail"),
        ),
    ),
    Row(
        "sums and indexes of a queue",
        Fate.RECOMPUTED,
        "from its entries and its terms",
        (
            *_of("InFlight", "_counters count size expiring has_counted has_former settling"),
            *_of("InFlight", "gives_verdicts response_timeout_s"),
            *_of("CallbackQueue", "_most_bytes _most_entries"),
            *_of("Session", "drops_outdated"),
        ),
    ),
    Row(
        "messages that the store lacks",
        Fate.WRITTEN,
        "byte by byte, with all that their receivers see",
        (
            *_of("Event", "wire"),
            *_of("Message", " ".join(sorted(_FIELDS))),
            *_of("record", " ".join(sorted(_RECORDS))),
        ),
    ),
    Row(
        "forms of a message that transports, decorators and the journal have cached",
        Fate.RECOMPUTED,
        "when the message is written to a receiver",
        (*_of("Event", "frame"), *_of("Message", "event_start journal_note")),
    ),
    Row(
        "attempts in other queues, refusals and shards of work, the last attempt of an entry",
        Fate.WRITTEN,
        "with the entry",
        (
            *_of("Message", "records"),
            *_of("InFlight", "records"),
            *_of("record", "Borrowed FormerAttempts _LastAttempt _Work"),
        ),
    ),
    Row(
        "dispatchers: retries, pauses, holds",
        Fate.WRITTEN,
        "with the time that is left",
        (
            *_of("Receiver", "dispatcher"),
            *_of("Dispatcher", "_awaited _has_refused acknowledged attempt deadline hold_record"),
            *_of("Dispatcher", "is_calm since state"),
        ),
    ),
    Row(
        "the policy of a dispatcher, and when its hold ends",
        Fate.RECOMPUTED,
        "from the terms, and from the moment in the hold",
        _of("Dispatcher", "policy hold_ends_at"),
    ),
    Row(
        "how long a session waits for a client that is away, and for lazy messages",
        Fate.WRITTEN,
        "with the time that is left",
        _of("Session", "ends_at lazy_due"),
    ),
    Row(
        "when a present client must have connected again",
        Fate.ANEW,
        "its client could not be heard in the meantime, so it gets the whole time; more is written"
        " if it still reads a long reply",
        _of("Session", "deadline"),
    ),
    Row(
        "cursors, serials of requests, the connection that lost the last reply",
        Fate.WRITTEN,
        "with the session",
        (
            *_of("Receiver", "records"),
            *_of("Session", "carrier"),
            *_of("record", "Cursors ReplyChannel _LacksMessages _SeenEarlier _Unclaimed"),
        ),
    ),
    Row(
        "attributes that extensions gave to sessions",
        Fate.WRITTEN,
        "values that JSON has; others are made again by `resume`",
        _of("Session", "attributes"),
    ),
    Row(
        "extensions of sessions, and what completes their events",
        Fate.RECOMPUTED,
        "by `resume`; a session that is not stored ends if its extension does not resume it",
        _of("Session", "extensions decorators"),
    ),
    Row(
        "held connects, requests and replies on their way",
        Fate.ANSWERED,
        "held connects are answered empty; the others are waited for",
        (
            *_of("Session", "held_connect unfinished pauses quiet_until"),
            *_of("Receiver", "is_ready"),
            *_of("CallbackQueue", "coming coming_bytes"),
            *_of("ServerState", "backlog handshakes_pending is_awake lingering hub"),
            *_of("SharedQueue", "requeued"),
            *_of("SessionLife", "answers"),
            *_of("Bayeux", "_due"),
            *_of("record", "Effect Spared _Unstored"),
        ),
    ),
    Row(
        "requests that wait for a history to get a message",
        Fate.ANSWERED,
        "empty; their clients ask the next process",
        (*_of("Bayeux", "streams"), *_of("ServerState", "readers")),
    ),
    Row(
        "calls of webhooks, and how many there were",
        Fate.ANSWERED,
        "those that take too long are made again; metrics begin again",
        _of("ServerState", "webhooks"),
    ),
    Row(
        "how the backend has answered",
        Fate.ANEW,
        "questions that are open are refused with 503; the next process asks again",
        _of("ServerState", "backend"),
    ),
    Row(
        "sockets of sessions",
        Fate.RECOMPUTED,
        "the next message over the socket names the session",
        _of("Session", "pipe"),
    ),
    Row(
        "shared queues of subjects and work, and delayed messages",
        Fate.WRITTEN,
        "their passing messages, with attempts and refusals; the store has the others",
        (
            *_of("ServerState", "subjects work waiting_places"),
            *_of("SharedQueue", "queue receiver"),
            *_of("Bayeux", "_ticking"),
        ),
    ),
    Row(
        "whose quota pays for messages in shared queues and for unclaimed sessions",
        Fate.ANEW,
        "as for stored messages: senders may fill their quota once more",
        (*_of("ChargedQueue", "_accounts _senders"), *_of("ServerState", "quotas")),
    ),
    Row(
        "how far a shared queue was searched, and who had work last",
        Fate.ANEW,
        "the search begins at the first message, the choice with the fewest entries",
        (*_of("SharedQueue", "oversized"), *_of("record", "_Worker")),
    ),
    Row(
        "histories of channels",
        Fate.WRITTEN,
        "passing messages, and from which message on a history is complete",
        (
            *_of("ServerState", "histories"),
            *_of("KeptMessages", "_messages channel floor is_floor_stored is_whole passed size"),
        ),
    ),
    Row(
        "outstanding requests",
        Fate.WRITTEN,
        "requests of sessions that are not stored; ended ones are forgotten: a late reply is denied"
        " in other words",
        (
            *_of("ServerState", "requests"),
            *_of(
                "Request",
                "address call carried channel deadline_ms id is_work mode replies reply_to",
            ),
            *_of("Request", "refusal requester responders spoken timeout_ms"),
        ),
    ),
    Row(
        "what follows from a request, and whose topic a message is",
        Fate.RECOMPUTED,
        "from deadlines, messages and requesters, once all of them are there",
        (
            *_of("Request", "_place arriving end ends_at is_kept is_leaving requests unheard"),
            *_of("Request", "counted is_lasting is_told shard"),
            *_of("record", "OfTopic RequestOf AskedElsewhere _Recorded"),
        ),
    ),
    Row(
        "presence: who is on a channel since when",
        Fate.WRITTEN,
        "in the order in which they joined",
        _of("ServerState", "presence"),
    ),
    Row(
        "who is on channels at other workers",
        Fate.WRITTEN,
        "they tell it again, and watchers hear who has left meanwhile",
        _of("ServerState", "presence_events"),
    ),
    Row(
        "which unconnected session ends first if slots run out",
        Fate.WRITTEN,
        "by the order of the sessions",
        _of("SessionLife", "unconnected"),
    ),
    Row(
        "topics and their configuration, channel holds, publish keys",
        Fate.STORED,
        "topics without configuration follow from messages and subscriptions; their timers and the"
        " verdicts that the guard has counted begin anew",
        (
            *_of("ServerState", "topics topic_changes guard"),
            *_of("SessionLife", "topics"),
            *_of("record", "PublishKey"),
        ),
    ),
    Row(
        "letters, logins and notices that wait to be told",
        Fate.ANSWERED,
        "they are told at the end of the turn",
        (
            *_of("ServerState", "notices refused_publishes system_events"),
            *_of("SessionLife", "owner"),
        ),
    ),
    Row(
        "budgets, admission, counters",
        Fate.ANEW,
        "budgets are full again, once for each leave; counters are those of a process",
        _of("ServerState", "budgets admission counters ledger"),
    ),
    Row(
        "that a session is one of a script, which publishes at any worker",
        Fate.ANSWERED,
        "what a script has posted is answered before all workers leave",
        _of("record", "_Spread"),
    ),
    Row(
        "which publishers a session knows, probes of held channels, that a full queue was reported",
        Fate.ANEW,
        "the guard counts from zero; a probe follows again, a report once more",
        _of("record", "_Overflow _Probed _Publishers"),
    ),
    Row(
        "reviews of rights, expiry and its timers",
        Fate.RECOMPUTED,
        "when a session is restored",
        (
            *_of("SessionLife", "reauthorizations message_expiry clock"),
            *_of("record", "Reauthorization _RightsChange"),
            *_of("Receiver", "number"),
        ),
    ),
    Row(
        "parts that keep no state beyond a turn",
        Fate.MADE,
        "by the assembly, from the settings and the extensions",
        (
            *_of("ServerState", "_cursor_forms _on_ready _others calls channels client_ids epoch"),
            *_of("ServerState", "error_handlers installed is_turn_over journal keeps_history log"),
            *_of("ServerState", "hold_events homes node options phase request_events rights"),
            *_of("ServerState", "rules run_later"),
            *_of("ServerState", "questions queue_limits request_limits services shards store"),
            *_of("SessionLife", "channel_holds ends failures hand_overs login_events settlement"),
            *_of("SessionLife", "state undelivered"),
            *_of("Bayeux", "_probes claims ext_reader life publish_handler publishing requests"),
            *_of("Bayeux", "far slots state subscribe_handler verdicts"),
        ),
    ),
)
