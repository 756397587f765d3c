"""Serves the files of the pages from memory.

A response read from an open file would hold a descriptor until a slow client has received all of
it.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from aiohttp import web
from aiohttp.helpers import ETAG_ANY
from multidict import CIMultiDictProxy

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".gz": "application/gzip",
    ".zip": "application/zip",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_OTHER = "text/plain; charset=utf-8"
_PACKED = ".gz"
# Modules that pages of other origins may import.
_MODULES = ("cometd/", "js/")
# The folders where npm installs cometd.js, and of the documentation, which has another path.
_NOT_SERVED = ("npm", "docs")


class Content(NamedTuple):
    """The content of a file, and a tag that differs for other content."""

    body: bytes
    tag: str


class StaticFile:
    """A file in memory; an edited file is read again."""

    __slots__ = ("_changed_ns", "_content", "_place")

    def __init__(self, place: Path) -> None:
        self._place = place
        self._changed_ns = place.stat().st_mtime_ns
        self._content = self._read()

    def content(self) -> Content:
        """Return the current content, or the last one if the file can no longer be read."""
        try:
            changed_ns = self._place.stat().st_mtime_ns
            if changed_ns != self._changed_ns:
                self._content = self._read()
                self._changed_ns = changed_ns
        except OSError:
            pass
        return self._content

    def _read(self) -> Content:
        body = self._place.read_bytes()
        return Content(body, hashlib.sha256(body).hexdigest()[:16])


StaticFiles = Mapping[str, StaticFile]
# Returns the CORS headers for a request with these headers.
Cors = Callable[[CIMultiDictProxy[str]], Mapping[str, str]]


def _none(_: CIMultiDictProxy[str]) -> Mapping[str, str]:
    return {}


def read_files(pages: Path) -> StaticFiles:
    """Read all files of the pages; their names are paths such as `chat/main.js`."""
    return {
        place.relative_to(pages).as_posix(): StaticFile(place)
        for folder in (pages, *_served(pages))
        for place in _served(folder)
        if place.is_file()
    }


def _served(folder: Path) -> Iterator[Path]:
    """Return the content of the folder; empty if it is a file."""
    if folder.is_dir():
        for place in folder.iterdir():
            if place.name not in _NOT_SERVED and not place.name.startswith("."):
                yield place


def add_files(application: web.Application, files: StaticFiles, cors: Cors = _none) -> None:
    """Serve these files below `/static/`, and no others there.

    Pages of other origins may import modules to which `cors` lets them.
    """

    async def serve(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in files:
            raise web.HTTPNotFound
        headers = {"Content-Type": type_of(PurePosixPath(name).suffix)}
        file, packed = files[name], files.get(name + _PACKED)
        varies = []
        if name.startswith(_MODULES):
            headers |= cors(request.headers)
            varies.append("Origin")
        if packed is not None:
            varies.append("Accept-Encoding")
            if "gzip" in request.headers.get("Accept-Encoding", "").lower():
                file, headers["Content-Encoding"] = packed, "gzip"
        if varies:
            headers["Vary"] = ", ".join(varies)
        # In a thread, because reading the modification time may wait for the disk.
        content = await asyncio.to_thread(file.content)
        response = web.Response(body=content.body, headers=headers)
        if has_already(request, content.tag):
            headers.pop("Content-Encoding", None)
            headers.pop("Content-Type")
            response = web.Response(status=web.HTTPNotModified.status_code, headers=headers)
        response.etag = content.tag
        return response

    application.router.add_get("/static/{name:.*}", serve)


def type_of(suffix: str) -> str:
    """Return the media type of files whose names end so."""
    return _TYPES.get(suffix, _OTHER)


def has_already(request: web.Request, tag: str) -> bool:
    """Return whether the client already has this content."""
    return any(each.value in (tag, ETAG_ANY) for each in request.if_none_match or ())
