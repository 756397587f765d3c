"""Messages to subjects reach them at whichever worker they are, once, and their senders hear it."""

from pathlib import Path
from typing import Any

import pytest

from tests.web.forwarding.workers import workers
from tests.web.people import Json, Person
from tests.web.sharding.test_crossing import heard

pytestmark = pytest.mark.untraced

# So many that each worker is the home of some.
NAMES = ["ann", "bob", "carl", "dora", "ed", "fay", "gus", "hal"]


async def address(person: Person, data: Any, *names: str, **options: Any) -> Json:
    content = {"destinations": [*names], "content": data}
    fields: dict[str, Any] = {"ext": {"delivery": options}} if options else {}
    return await person.reply("/service/ptp", data=content, **fields)


def states(reply: Json) -> list[str]:
    return [each["state"] for each in reply["ext"]["delivery"]["destinations"]]


async def test_subjects_of_all_workers_get_what_is_addressed_to_them(tmp_path: Path) -> None:
    async with workers(tmp_path, chat=False) as at:
        people = [at.person(number % 2) for number in range(len(NAMES))]
        for name, person in zip(NAMES, people, strict=True):
            assert (await person.handshake(f"{name}/1"))["successful"]
        assert {at.home_of(name) for name in NAMES} == {0, 1}
        guests = [at.person(0), at.person(1)]
        for guest in guests:
            await guest.handshake()
        for number, guest in enumerate(guests):
            assert states(await address(guest, number, *NAMES)) == ["OK"] * len(NAMES)
            reply = await address(guest, "lost", "nobody", key=f"lost {number}")
            assert reply["error"].startswith("404:user.ptp.unknownDestination")
        for number, guest in enumerate(guests):
            # A repeat is answered as the first one, and reaches no one again.
            sent = [await address(guest, 2 + number, *NAMES, key="k") for _ in range(2)]
            assert sent[0]["ext"] == sent[1]["ext"]
        for person in people:
            assert sorted(await heard(person, 4)) == [0, 1, 2, 3]
