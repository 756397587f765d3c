"""An imported letter goes to the shard that has its receiver."""

import orjson
import pytest

from holdfast.cluster.shards import Homes, ShardMap, Shards
from holdfast.web.joint.importing import shard_of_line

# Subjects and channels have homes by their last letter; the deployment has three shards.
_MAP = ShardMap(tuple([bucket % 3 for bucket in range(1000)]))
HOMES = Shards(_MAP, Homes({"/jobs/*": 2}), lambda name: ord(name[-1]) - ord("a"))


@pytest.mark.parametrize(
    ("receiver", "id", "shard"),
    [
        ("/node/n/client/marb/1", "1000", 1),
        ("/node/n/client/marc/1", "1000", 2),
        # Sessions that a server has named: the number, or else the subject, says where they are.
        ("/node/n/client/anonymous/-7002", "1000", 2),
        ("/node/n/client/marb/-7002", "1000", 1),
        # Of a server without shards.
        ("/node/n/client/anonymous/-7", "1000", 0),
        ("/node/n/client/work:/jobs/b/0", "1000", 1),
        # Without a home, it stays where it was, if there is such a shard.
        ("/node/n/client/work:/others/0", "1002", 2),
        ("/node/n/client/work:/others/0", "1999", 0),
    ],
)
def test_the_receiver_of_a_letter_decides(receiver: str, id: str, shard: int) -> None:
    assert shard_of_line(orjson.dumps({"receiver": receiver, "id": id}), HOMES) == shard


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"{}", b'{"receiver":"x"}', b'{"id":"y"}'])
def test_what_is_no_letter_goes_to_the_first_shard(line: bytes) -> None:
    assert shard_of_line(line, HOMES) == 0
