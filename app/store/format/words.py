"""Arguments that several scripts have: messages that enter queues, and hand-overs that follow."""

from collections.abc import Mapping, Sequence

from holdfast.delivery.messages.marks import BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.store.format import records
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import WrittenForm
from holdfast.store.links.resp import Word
from holdfast.store.links.script import Positions


def words_entering(
    keys: RedisKeys,
    positions: Positions,
    message: Message,
    receivers: Sequence[str],
    form: WrittenForm,
) -> list[Word]:
    """Return the arguments for a message that enters queues."""
    receivers_at = positions.of(keys.receivers(message.id))
    generation = records.pack_origin(message)
    body = records.pack_message(message)
    words: list[Word] = [message.id, receivers_at, body, generation, len(receivers), *receivers]
    if generation:
        words += [positions.of(keys.marks(receiver)) for receiver in receivers]
    elif len(receivers) == 1 and len(body) <= records.MOST_OF_ONE and form.has_single_receivers:
        words[3] = records.OF_ONE
    return words


def words_handing_over(
    keys: RedisKeys,
    positions: Positions,
    hand_overs: Mapping[str, BatchMark],
    incarnation: str,
) -> list[Word]:
    """Return the arguments for hand-overs that follow at once."""
    if not hand_overs:
        return [0]
    words: list[Word] = [2 * len(hand_overs), positions.of(keys.handed), incarnation]
    for receiver, batch in hand_overs.items():
        words += (receiver, records.pack_batch(batch))
    return words
