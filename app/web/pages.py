"""The pages for people: they offer what is served here and nothing else."""

import html
import re
from collections.abc import Container
from pathlib import Path
from string import Template

from aiohttp import web

from app.web.endpoint import Endpoint

PAGE_HEADERS = {
    # cometd.js keeps its timers in a worker, which browsers do not slow down behind other tabs.
    "Content-Security-Policy": "default-src 'self'; worker-src blob:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
    "Server": "Holdfast",
}

# Scripts and styles of this server alone, nothing inline, and no way from a text to HTML.
_CONSOLE_HEADERS = {
    **PAGE_HEADERS,
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}

_PART = re.compile(r"\s*<!-- if (\S+) -->(.*?)<!-- end -->", re.DOTALL)


# All that the console loads besides its own folder.
_FILES_OF_CONSOLE = ("icon.svg", "css/holdfast.css", "js/storage.js")


def add_pages(
    application: web.Application, endpoint: Endpoint, pages: Path, *, chat: bool, console: bool
) -> None:
    """Serve the welcome page and, as far as they are offered, the chat and the console."""
    offers = {"chat": chat, "console": console}
    served = {name for name, is_offered in offers.items() if is_offered}
    served |= {*endpoint.options.transports}
    for folder in ("", *sorted(served & offers.keys())):
        text = (pages / folder / "index.html").read_text("utf-8")
        headers = _CONSOLE_HEADERS if folder == "console" else PAGE_HEADERS
        _add_page(application, folder, _fill(text, served, endpoint.options.paths[0]), headers)
    application.router.add_static("/static/", pages)


def add_console(application: web.Application, pages: Path) -> None:
    """Serve the console alone, with the files that it needs."""

    async def to_console(_: web.Request) -> web.Response:
        raise web.HTTPFound("console/")

    application.router.add_get("/", to_console)
    text = (pages / "console" / "index.html").read_text("utf-8")
    _add_page(application, "console", text, _CONSOLE_HEADERS)
    application.router.add_static("/static/console/", pages / "console")
    for file in _FILES_OF_CONSOLE:
        _add_file(application, file, pages / file)


def _add_file(application: web.Application, name: str, place: Path) -> None:
    async def file(_: web.Request) -> web.FileResponse:
        return web.FileResponse(place)

    application.router.add_get(f"/static/{name}", file)


def _fill(text: str, served: Container[str], path: str) -> str:
    """The page with the path of the Bayeux server, without the parts that are not served."""
    text = _PART.sub(lambda part: part[2] if part[1] in served else "", text)
    return Template(text).substitute(path=html.escape(path))


def _add_page(
    application: web.Application, folder: str, text: str, headers: dict[str, str]
) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text=text, content_type="text/html", headers=headers)

    async def to_folder(_: web.Request) -> web.Response:
        raise web.HTTPPermanentRedirect(folder + "/")

    if folder:
        application.router.add_get(f"/{folder}", to_folder)
        application.router.add_get(f"/{folder}/", page)
    else:
        application.router.add_get("/", page)
