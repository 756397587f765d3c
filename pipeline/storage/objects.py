"""Objects in a bucket of S3, or of a server that speaks its protocol.

Where the server is, and who asks, say the usual variables of the environment: AWS_ENDPOINT_URL,
AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
"""

import errno
import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from pathlib import Path, PosixPath
from stat import S_IFREG
from typing import TYPE_CHECKING, Any

from holdfast.pipeline.failures import NotInstalled, PipelineFailed

if TYPE_CHECKING:
    from obstore.store import S3Store
    from pyarrow.fs import FileSystem

SCHEME = "s3://"
# After this, the server counts as unreachable.
_RETRIES = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
# Bytes read at a time.
PIECE = 2**20
# What a server says, in an error of the library.
_SAID = re.compile(r"status code: (?P<status>\d+)(?:.*?<Code>(?P<code>\w+)</Code>)?", re.DOTALL)


class ObjectPath(PosixPath):
    """The path of an object, with those methods of a file's path that the tables need.

    An object is written whole, and is durable then. What has no method here fails.
    """

    @classmethod
    def of(cls, url: str) -> "ObjectPath":
        """Return the path that a URL names: s3://BUCKET/PREFIX."""
        return cls(f"/{url.removeprefix(SCHEME)}")

    def __str__(self) -> str:
        name = super().__str__()
        return f"s3:/{name}" if name.startswith("/") else name

    def __fspath__(self) -> str:
        raise TypeError(f"{self} is not on this machine")

    @property
    def arrow_name(self) -> str:
        """The name in `filesystem`."""
        return "/".join(self.parts[1:])

    @property
    def _key(self) -> str:
        return "/".join(self.parts[2:])

    def resolve(self, strict: bool = False) -> "ObjectPath":
        return self

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return its size and the time of its writing, as of a file; all else is 0."""
        with self._asking() as bucket:
            found = bucket.head(self._key)
        times = [int(found["last_modified"].timestamp())] * 3
        return os.stat_result([S_IFREG, 0, 0, 0, 0, 0, found["size"], *times])

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Return whether there are objects below it."""
        return next(self._below(1), None) is not None

    def glob(self, pattern: str) -> Generator["ObjectPath", None, None]:
        depth = pattern.count("/") + 1
        for path in self.rglob(pattern):
            if len(path.relative_to(self).parts) == depth:
                yield path

    def rglob(self, pattern: str) -> Generator["ObjectPath", None, None]:
        for path, _ in self._below():
            if path.relative_to(self).match(pattern):
                yield path

    def size_below(self, pattern: str) -> int:
        """Return the size of all objects below it whose names match."""
        return sum(size for path, size in self._below() if path.match(pattern))

    def _below(self, together: int = 1000) -> Iterator[tuple["ObjectPath", int]]:
        root = ObjectPath("/", self.parts[1])
        with self._asking() as bucket:
            for some in bucket.list(self._key, chunk_size=together):
                for each in some:
                    yield root / each["path"], each["size"]

    def read_bytes(self) -> bytes:
        with self._asking() as bucket:
            return bytes(bucket.get(self._key).bytes())

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def pieces(self) -> Iterator[bytes]:
        """Yield the content, piece by piece."""
        with self._asking() as bucket:
            for piece in bucket.get(self._key).stream(PIECE):
                yield bytes(piece)

    def read_marked(self) -> tuple[str, str]:
        """Return the content and a mark of it, for `replace_marked`."""
        with self._asking() as bucket:
            found = bucket.get(self._key)
            return bytes(found.bytes()).decode(), str(found.meta["e_tag"])

    def write(self, text: str) -> None:
        with self._asking() as bucket:
            bucket.put(self._key, text.encode())

    def create(self, text: str) -> str | None:
        """Write an object that does not exist, and return its mark; None if it exists."""
        return self._put_if("create", text)

    def replace_marked(self, text: str, mark: str) -> str | None:
        """Replace what has this mark, and return the new one; None if another has replaced it.

        The text must differ from all earlier ones: equal texts may have the same mark.
        """
        return self._put_if({"e_tag": mark}, text)

    def _put_if(self, mode: Any, text: str) -> str | None:  # noqa: ANN401 - a literal, or an ETag
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._asking() as bucket:
            try:
                return str(bucket.put(self._key, text.encode(), mode=mode)["e_tag"])
            except (AlreadyExistsError, PreconditionError):
                return None

    def upload(self, file: Path) -> None:
        """Write what a file contains."""
        with self._asking() as bucket:
            bucket.put(self._key, file)

    def hardlink_to(self, target: Any) -> None:  # noqa: ANN401 - as Path
        """Copy the target, an object in the same bucket, which never changes."""
        with self._asking() as bucket:
            bucket.copy(target._key, self._key)

    def touch(self, mode: int = 0, exist_ok: bool = True) -> None:
        self.write("")

    def mkdir(self, mode: int = 0, parents: bool = False, exist_ok: bool = False) -> None:
        """A bucket has no folders."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the object, if it exists."""
        self._remove([self._key])

    def remove_all(self) -> None:
        """Remove all objects below it."""
        if keys := [path._key for path, _ in self._below()]:
            self._remove(keys)

    def _remove(self, keys: list[str]) -> None:
        with self._asking() as bucket, suppress(FileNotFoundError):
            bucket.delete(keys)

    @contextmanager
    def _asking(self) -> Iterator["S3Store"]:
        """Yield the bucket; its errors become ours.

        Raises:
            FileNotFoundError: There is no such object.
            PipelineFailed: The server does not answer, or refuses.
        """
        bucket = _bucket(self.parts[1], _endpoint())
        from obstore.exceptions import BaseError

        try:
            yield bucket
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise PipelineFailed(f"{self}: there is no such bucket") from None
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from error
        except BaseError as error:
            raise PipelineFailed(f"{self}: {_in_words(str(error))}") from None


def _in_words(text: str) -> str:
    """Return what an error of the library says to users; it begins with everything it knows."""
    said = _SAID.search(text)
    if said is None:
        return f"{_endpoint() or 'S3'} does not answer: AWS_ENDPOINT_URL names the server"
    code = said["code"] or said["status"]
    if code in ("403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"):
        return f"{code}: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights they give"
    return f"the server says {code}"


def _endpoint() -> str | None:
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def _is_plain(endpoint: str | None) -> bool:
    """Return whether the server is asked without TLS, as the URL says."""
    return endpoint is not None and endpoint.startswith("http://")


@cache
def _bucket(name: str, endpoint: str | None) -> "S3Store":
    try:
        from obstore.store import S3Store
    except ImportError:
        raise NotInstalled("obstore") from None
    settings: Any = {} if endpoint is None else {"endpoint": endpoint}
    options: Any = {"allow_http": _is_plain(endpoint)}
    retries: Any = _RETRIES
    return S3Store(name, client_options=options, retry_config=retries, **settings)


def filesystem() -> "FileSystem":
    """Return the objects of all buckets, as Arrow reads them."""
    return _filesystem(_endpoint())


@cache
def _filesystem(endpoint: str | None) -> "FileSystem":
    from pyarrow.fs import S3FileSystem

    # Arrow reads no endpoint from the environment; without a region it asks the network for one.
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return S3FileSystem(endpoint_override=endpoint, region=region or "us-east-1")


def delta_options() -> dict[str, str]:
    """Return what the library for tables must be told to read and change them."""
    endpoint = _endpoint()
    known = {} if endpoint is None else {"aws_endpoint_url": endpoint}
    return {**known, "conditional_put": "etag", "allow_http": str(_is_plain(endpoint)).lower()}
