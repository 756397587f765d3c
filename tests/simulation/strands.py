"""Code that waits in one place: it runs in a thread of its own, and never beside anything else."""

import _thread
from collections.abc import Callable


class Killed(BaseException):
    """The process of this code was killed where it waits."""


class Strand:
    """Hands a baton to its thread and gets it back, so that one of both runs at a time."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._go_on, self._back = _thread.allocate_lock(), _thread.allocate_lock()
        self._go_on.acquire()
        self._back.acquire()
        self._has_begun = self._is_killed = False
        self.is_over = False
        self._error: BaseException | None = None

    def go_on(self) -> None:
        """Run it until it waits again, or is over. Raises what it has raised."""
        if self._has_begun:
            self._go_on.release()
        else:
            self._has_begun = True
            _thread.start_new_thread(self._main, ())
        self._back.acquire()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def kill(self) -> None:
        """End it where it waits."""
        if self._has_begun and not self.is_over:
            self._is_killed = True
            self.go_on()

    def wait(self) -> None:
        """Wait, in its thread, until it is to go on."""
        self._back.release()
        self._go_on.acquire()
        if self._is_killed:
            raise Killed

    def _main(self) -> None:
        try:
            self._run()
        except Killed:
            pass
        except BaseException as error:
            self._error = error
        self.is_over = True
        self._back.release()
