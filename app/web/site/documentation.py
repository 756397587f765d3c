"""Serves the documentation at `/docs/`, if it was built into this installation.

Its files are compressed, and are read when somebody asks for them: they are some megabytes that
most servers never send.
"""

import asyncio
import gzip
import hashlib
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from aiohttp import web

from holdfast.web.site.static_files import has_already, type_of

PREFIX = "/docs/"
_INDEX, _PACKED, _POLICY = "index.html", ".gz", "policy.txt"
# Their names change with their content.
_FIXED = ("assets/javascripts/", "assets/stylesheets/")
# Programs that pages link to, which no browser runs.
_FILES = ("examples/", "deploy/")


class Documentation(NamedTuple):
    """The files of the built site, and the hashes of scripts and styles in its pages."""

    folder: Path
    names: frozenset[str]
    hashes: tuple[tuple[str, str], ...]

    @property
    def policy(self) -> str:
        """Only this server's own, and the theme's few inline scripts and styles by their hashes."""
        scripts, styles = (
            " ".join(["'self'", *(f"'{each}'" for about, each in self.hashes if about == kind)])
            for kind in ("script-src", "style-src")
        )
        return (
            f"default-src 'none'; script-src {scripts}; style-src {styles}; "
            "img-src 'self' data:; connect-src 'self'; worker-src 'self'; "
            "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        )


def is_built(pages: Path) -> bool:
    """Return whether the site is below this folder of pages."""
    return (pages / "docs" / _POLICY).is_file()


def find_documentation(pages: Path) -> Documentation | None:
    """Return the site below this folder of pages, or None if none was built."""
    folder = pages / "docs"
    policy = folder / _POLICY
    if not is_built(pages):
        return None
    files = (place for place in folder.rglob("*") if place.is_file() and place != policy)
    names = (place.relative_to(folder).as_posix().removesuffix(_PACKED) for place in files)
    hashes = (line.split() for line in policy.read_text("utf-8").splitlines())
    return Documentation(folder, frozenset(names), tuple((kind, each) for kind, each in hashes))


def add_documentation(
    application: web.Application, documentation: Documentation, headers: dict[str, str]
) -> None:
    """Serve the site below `/docs/`, with these headers of pages and its policy."""
    common = {**headers, "Content-Security-Policy": documentation.policy}

    async def serve(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if not name or name.endswith("/"):
            name += _INDEX
        elif f"{name}/{_INDEX}" in documentation.names:
            raise web.HTTPPermanentRedirect(f"{PREFIX}{name}/")
        # All names that exist are known: a path to somewhere else is none of them.
        if name not in documentation.names:
            raise web.HTTPNotFound
        takes_packed = "gzip" in request.headers.get("Accept-Encoding", "").lower()
        body, is_packed = await asyncio.to_thread(_read, documentation.folder / name, takes_packed)
        tag = hashlib.sha256(body).hexdigest()[:16]
        own = {**common, "Vary": "Accept-Encoding"}
        if name.startswith(_FIXED):
            own["Cache-Control"] = "public, max-age=31536000, immutable"
        if has_already(request, tag):
            response = web.Response(status=web.HTTPNotModified.status_code, headers=own)
        else:
            own["Content-Type"] = _type_of(name)
            if is_packed:
                own["Content-Encoding"] = "gzip"
            response = web.Response(body=body, headers=own)
        response.etag = tag
        return response

    async def to_folder(_: web.Request) -> web.Response:
        raise web.HTTPPermanentRedirect(PREFIX)

    application.router.add_get(PREFIX.rstrip("/"), to_folder)
    application.router.add_get(PREFIX + "{name:.*}", serve)


def _read(place: Path, takes_packed: bool) -> tuple[bytes, bool]:
    """Return the content of a file, and whether it is compressed. It reads the disk."""
    packed = place.with_name(place.name + _PACKED)
    try:
        body = packed.read_bytes()
    except FileNotFoundError:
        return place.read_bytes(), False
    return (body, True) if takes_packed else (gzip.decompress(body), False)


def _type_of(name: str) -> str:
    # Sources are read, archives saved.
    if name.startswith(_FILES) and not name.endswith(".zip"):
        return "text/plain; charset=utf-8"
    return type_of(PurePosixPath(name).suffix)
