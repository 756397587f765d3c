"""Which shard has a session, or the requester that a reply goes to."""

from typing import TYPE_CHECKING

from holdfast.bayeux.state.session_registry import SHARDS
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.delivery.basics.channels import REPLIES
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.delivery.shared_queues.work import PREFIX as WORK

if TYPE_CHECKING:
    from holdfast.delivery.ports.homes import HomesPort


def shard_of(subject: str, number: int, homes: "HomesPort") -> int | None:
    """Return the shard of a subject or a session; None if it is this one, or if there is none."""
    if subject != NOBODY:
        return homes.home_of_subject(subject)
    # Its number says which shard gave it.
    return homes.home_of_guest(-number % SHARDS)


def shard_of_session(key: str, homes: "HomesPort") -> int | None:
    """Return the shard of a session, or of a work queue, by its key; None if it is this one."""
    subject, _, number = key.rpartition("/")
    if subject.startswith(WORK):
        return homes.home_of(subject.removeprefix(WORK))
    return shard_of(subject, int(number), homes)


def shard_of_reply(address: str, client_ids: ClientIds, homes: "HomesPort") -> int | None:
    """Return the shard of the session that gets replies there; None if it is this one."""
    id = address.removeprefix(REPLIES).partition("/")[0]
    return homes.home_of_bucket(client_ids.bucket_in(id))
