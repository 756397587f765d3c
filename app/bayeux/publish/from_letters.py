"""Does what other shards ask this one for by letters."""

from collections.abc import Callable, Mapping
from functools import partial

from holdfast.bayeux.publish.addressed_here import AddressedHere
from holdfast.bayeux.publish.addressed_letter import ADDRESSED, Result, addressed_in
from holdfast.bayeux.publish.at_home import AtHome
from holdfast.bayeux.publish.home_letter import PUBLISHED
from holdfast.bayeux.state.server_state import ServerState
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.shard_letter import ShardLetter
from holdfast.delivery.ports.homes import NO_ANSWER, HomesPort

# Does a letter, at the given time.
Way = Callable[[ShardLetter, float], None]


class FromLetters:
    """Does letters, each of which is answered once.

    Args:
        ways: What does the letters of other features, by what these are called.
    """

    def __init__(
        self,
        state: ServerState,
        homes: HomesPort,
        *,
        here: AddressedHere,
        at_home: AtHome,
        ways: Mapping[str, Way],
        go_on: Callable[[], None],
    ) -> None:
        self._state = state
        self._here = here
        self._homes = homes
        # Goes on with what an earlier process had: its sessions are restored.
        self.go_on = go_on
        self._ways: dict[str, Way] = {
            ADDRESSED: self._address,
            PUBLISHED: at_home.carry_out,
            **ways,
        }

    def add(self, what: str, way: Way) -> None:
        """Let this do the letters of a kind."""
        self._ways[what] = way

    def do(self, letter: ShardLetter, now: float) -> None:
        """Do a letter from the inbox, and answer it now or later."""
        try:
            if not self._state.calls.serve(letter, now):
                self._ways[letter.what](letter, now)
        except Exception:
            # Otherwise it would be done again at each start.
            self._state.log.exception("a letter of shard %d could not be done", letter.sender)
            self._homes.answer(letter, NO_ANSWER)

    def _address(self, letter: ShardLetter, now: float) -> None:
        addressed = addressed_in(letter.data)
        done = partial(self._addressed, letter, addressed.message)
        self._here.publish(addressed, done, now=now, letter=letter)

    def _addressed(
        self, letter: ShardLetter, message: Message, result: Result | None, is_answered: bool
    ) -> None:
        if is_answered:
            self._homes.has_answered(message)
        elif result is not None:
            self._homes.answer(letter, result.to_json())
