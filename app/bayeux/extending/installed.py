"""The installed extensions, and which messages each of them sees."""

from functools import partial
from typing import TYPE_CHECKING

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.hooks import HookFailed, check_hook, is_own, names_of
from holdfast.bayeux.wire.identity import SERVER
from holdfast.bayeux.wire.reserved import RESERVED_EXT, refuse_ext

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class InstalledExtensions:
    """The extensions in the order of installation."""

    def __init__(self) -> None:
        self.all: tuple[ServerExtension, ...] = ()
        # The extensions with a hook for published messages.
        self.eventful: tuple[ServerExtension, ...] = ()
        # Whether an application installed any. Their output may not be valid JSON.
        self.has_others = False
        # Credentials are never forwarded, even if no extension reads them. The server itself reads
        # `replay`.
        self.owned = frozenset({"authentication", "replay"})
        # The checks of each key of `ext`, which run before its message takes effect.
        self.checks: dict[str, tuple[Callable[[Json], None], ...]] = {
            name: (partial(refuse_ext, name),) for name in RESERVED_EXT
        }

    def extend(self, extension: ServerExtension) -> None:
        """Install an extension after the installed ones."""
        kind = type(extension).__name__
        check_hook(f"{kind}.resume", extension.resume)
        check_hook(f"{kind}.event", extension.event)
        self.all += (extension,)
        self.has_others |= not is_own(extension)
        if type(extension).event is not ServerExtension.event:
            self.eventful += (extension,)
        own: tuple[Callable[[Json], None], ...] = (extension.check,)
        for name in extension.owns:
            # A reserved name is refused until an extension owns it.
            others = self.checks.get(name, ()) if name in self.owned else ()
            self.checks[name] = (*others, *own) if others else own
        self.owned |= extension.owns

    def of(self, session: Session) -> "Sequence[ServerExtension]":
        """Return the extensions that may have a part in a session.

        An application's extensions are for clients, not for sessions of the server.
        """
        if session.identity.role != SERVER:
            return self.all
        return [each for each in self.all if "delivery" in each.owns]

    def check(self, message: Json) -> None:
        """Run the checks of the keys in `ext`. Raises `Refused`."""
        done: Sequence[Callable[[Json], None]] = ()
        for name in message["ext"]:
            checks = self.checks.get(name, ())
            if checks is not done:
                # Keys of one extension, which are usually adjacent, are checked together.
                for check in checks:
                    check(message)
                done = checks

    def complete(self, event: Json) -> None:
        """Let each extension complete an event before it is published."""
        for extension in self.eventful:
            try:
                extension.event(event)
            except Exception:
                raise
            except BaseException as error:
                # The publisher, which may be another extension's task, is not at fault.
                raise HookFailed(f"event hook of {type(extension).__name__}") from error

    def authors(self, sender: Session | None) -> str:
        """Return the names of the extensions that may have changed an event."""
        asked = () if sender is None else sender.extensions
        seeing = [each for each in asked if type(each).incoming is not SessionExtension.incoming]
        return names_of([*seeing, *self.eventful]) or "from who published it"
