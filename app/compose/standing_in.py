"""What serves in place of a server that ends again and again, until the next one is ready."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from holdfast.compose.listen_addresses import find_addresses
from holdfast.compose.listening import ADMIN, MAIN, inherited
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.web.http.origins import Origins
from holdfast.web.standby import StandbyDoor

_REASON = "the server has ended several times in a minute: see its log"


@asynccontextmanager
async def standing_in(settings: Settings, succession: Succession) -> AsyncIterator[None]:
    """Refuse all requests at the inherited sockets. Raises `CannotStart`."""
    addresses = await find_addresses(settings)
    origins = Origins(settings.allow_origin)
    async with AsyncExitStack() as stack:
        for name, address in ((MAIN, addresses.main), (ADMIN, addresses.admin)):
            if address is not None:
                door = StandbyDoor(address, origins, is_healthy=False, reason=_REASON)
                stack.push_async_callback(door.close)
                await door.open(inherited(name, succession))
        yield
