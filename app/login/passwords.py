"""A file of passwords: lines of `subject:argon2id hash:group,group`."""

import fcntl
import os
import re
import secrets
import stat
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from holdfast.bayeux.wire.terms import is_subject
from holdfast.login.failures import Cause, LoginFailed, Unusable
from holdfast.login.watched_file import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@+~-]{0,62}")
_PREFIX = "$argon2id$"
# The longest password; longer ones would only cost time.
LONGEST = 1024
# 19 MiB and two passes, as OWASP advises for servers that do other things meanwhile.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
# The most passwords whose check is remembered.
_MOST_CHECKED = 1000


@dataclass(frozen=True, slots=True)
class User:
    """One line of the file."""

    subject: str
    # Never printed: passwords can be tried against it.
    hash: str = field(repr=False)
    groups: tuple[str, ...] = ()

    def line(self) -> str:
        return f"{self.subject}:{self.hash}:{','.join(self.groups)}"


Users = Mapping[str, User]


def read_users(text: bytes) -> Users:
    """Read a file of passwords. Raises `Unusable`."""
    users: dict[str, User] = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        subject, _, rest = line.partition(":")
        hashed, _, groups = rest.partition(":")
        if not is_subject(subject) or not hashed.startswith(_PREFIX):
            raise Unusable(f"line {number}: it must be subject:argon2id hash:groups")
        if subject in users:
            raise Unusable(f"line {number}: {subject} is listed twice")
        users[subject] = User(subject, hashed, check_groups(groups.split(",") if groups else []))
    return users


def check_groups(names: list[str]) -> tuple[str, ...]:
    """Return the groups. Raises `Unusable` if a name is invalid."""
    for name in names:
        if not _GROUP.fullmatch(name):
            raise Unusable(f"{name!r} is not a group's name: use letters, digits and . _ / @ + ~ -")
    return tuple(names)


def verify(users: Users, subject: str, password: str) -> User:
    """Return the user with this password; takes 20 ms of processor time, also if there is none.

    Raises `LoginFailed`.
    """
    user = users.get(subject)
    try:
        # An unknown name must take as long as a known one.
        _HASHER.verify(_nobodys() if user is None else user.hash, password[:LONGEST])
    except (VerificationError, InvalidHashError, ValueError):
        raise LoginFailed(Cause.PASSWORD) from None
    if user is None:
        raise LoginFailed(Cause.PASSWORD)
    return user


class CheckedPasswords:
    """Passwords that were right: requests that repeat them need no slow hash."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        # The stored hashes that they fitted, by digest; another password has another hash.
        self._hashes: OrderedDict[bytes, str] = OrderedDict()

    def fits(self, user: User, password: str) -> bool:
        """Return whether this password was right for the user, as it is stored now."""
        digest = self._digest(user, password)
        if self._hashes.get(digest) != user.hash:
            return False
        self._hashes.move_to_end(digest)
        return True

    def add(self, user: User, password: str) -> None:
        """Remember a password that was right."""
        self._hashes[self._digest(user, password)] = user.hash
        if len(self._hashes) > _MOST_CHECKED:
            self._hashes.popitem(last=False)

    def _digest(self, user: User, password: str) -> bytes:
        text = f"{user.subject}\n{password}".encode("utf-8", "surrogatepass")
        return blake2b(text, digest_size=16, key=self._key).digest()


def hashed(password: str) -> str:
    """Return the hash to store for a password."""
    return _HASHER.hash(password)


@cache
def _nobodys() -> str:
    return hashed(secrets.token_urlsafe())


class PasswordFile:
    """Changes a file of passwords: one process at a time, and readers never see half a change."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def users(self) -> Users:
        """Read the file, which may be missing. Raises `Unusable`."""
        return read_file(self._path, read_users) if self._path.exists() else {}

    def put(self, user: User) -> None:
        """Add the user, or change it. Raises `Unusable`."""
        with self._changing() as users:
            users[user.subject] = user

    def remove(self, subject: str) -> bool:
        """Remove the user; return whether there was one. Raises `Unusable`."""
        with self._changing() as users:
            return users.pop(subject, None) is not None

    @contextmanager
    def _changing(self) -> "Iterator[dict[str, User]]":
        try:
            with self._locked():
                users = dict(self.users())
                yield users
                self._write("".join(each.line() + "\n" for each in users.values()))
        except OSError as error:
            raise Unusable(f"{self._path}: {error.strerror}") from None

    @contextmanager
    def _locked(self) -> "Iterator[None]":
        # The folder: the file itself is replaced by each change.
        number = os.open(self._path.absolute().parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            yield
        finally:
            os.close(number)

    def _write(self, text: str) -> None:
        mode = stat.S_IMODE(self._path.stat().st_mode) if self._path.exists() else 0o600
        number, name = tempfile.mkstemp(dir=self._path.absolute().parent, prefix=".passwords-")
        try:
            with os.fdopen(number, "w") as file:
                os.fchmod(number, mode)
                file.write(text)
                file.flush()
                os.fsync(number)
            os.replace(name, self._path)
        except OSError:
            os.unlink(name)
            raise
