"""How often the servers of each shard have ended, and how: all of them know, for operators."""

from collections.abc import Callable, Sequence

from holdfast.supervisor.control import Do
from holdfast.supervisor.places import Place

# By shard.
Ends = dict[str, tuple[int, str]]


def ends_of(places: Sequence[Place], shard_of: Callable[[Place], int]) -> Ends:
    """Return how often the servers of each place have ended, and how the last one did."""
    return {str(shard_of(each)): (each.ends, each.last_end) for each in places if each.ends}


def tell_ends(places: Sequence[Place], shard_of: Callable[[Place], int]) -> None:
    """Tell the others of several servers."""
    for place in places if len(places) > 1 else ():
        if place.is_serving and place.living is not None:
            place.living.tell(do=Do.KNOW, ends=ends_of(places, shard_of))
