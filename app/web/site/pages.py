"""Serves the pages for people, which link only to what this server offers."""

import html
import re
from collections.abc import Collection, Container, Mapping
from string import Template

from aiohttp import web

from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.site.documentation import PREFIX, Documentation, add_documentation
from holdfast.web.site.static_files import StaticFiles, add_files

PAGE_HEADERS = {
    # cometd.js runs its timers in a worker, because browsers slow down timers of hidden tabs.
    "Content-Security-Policy": "default-src 'self'; worker-src blob:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
    "Server": "Holdfast",
}

# Only this server's scripts and styles, nothing inline, and no HTML made from strings.
_CONSOLE_HEADERS = {
    **PAGE_HEADERS,
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}

_PART = re.compile(r"\s*<!-- (if|unless) (\S+) -->(.*?)<!-- end -->", re.DOTALL)
_CODE = re.compile(r"<!-- code (\w+) -->")
# The languages in which each step of the welcome page is shown, by the endings of their files.
_LANGUAGES = ("sh", "js", "py")


# The files that the console loads; a name that ends in a slash is a folder.
_FILES_OF_CONSOLE = (
    "bayeux.js", "console/", "css/holdfast.css", "dom.js", "icon.svg", "js/storage.js",
)  # fmt: skip


def add_pages(
    application: web.Application,
    endpoint: Endpoint,
    files: StaticFiles,
    *,
    chat: bool,
    console: bool,
    login: Collection[str],
    docs: Documentation | str,
) -> None:
    """Serve the welcome page and, if enabled, the chat, the console and the documentation.

    `login` names the parts of the form by which users of the chat sign in. `docs` is the
    documentation, or its URL elsewhere, which may be empty.
    """
    offers = {"chat": chat, "console": console}
    served = {name for name, is_offered in offers.items() if is_offered}
    served |= {*endpoint.options.transports, *login}
    if isinstance(docs, Documentation):
        add_documentation(application, docs, PAGE_HEADERS)
        docs = PREFIX
    if docs:
        served.add("docs")
    given = {"path": endpoint.options.paths[0], "docs": docs}
    if login:
        # Its URLs would show the credentials.
        served.discard(ConnectionType.CALLBACK_POLLING)
    for folder in ("", *sorted(served & offers.keys())):
        text = _fill(_index(files, folder), served, given)
        headers = _CONSOLE_HEADERS if folder == "console" else PAGE_HEADERS
        _add_page(application, folder, _with_code(text, files), headers)
    add_files(application, files, endpoint.cors)


def add_console(application: web.Application, files: StaticFiles) -> None:
    """Serve only the console and the files that it loads."""

    async def to_console(_: web.Request) -> web.Response:
        raise web.HTTPFound("console/")

    application.router.add_get("/", to_console)
    _add_page(application, "console", _fill(_index(files, "console"), (), {}), _CONSOLE_HEADERS)
    add_files(application, {n: files[n] for n in files if n.startswith(_FILES_OF_CONSOLE)})


def _index(files: StaticFiles, folder: str) -> str:
    return _text(files, f"{folder}/index.html".lstrip("/"))


def _text(files: StaticFiles, name: str) -> str:
    return files[name].content().body.decode()


def _fill(text: str, served: Container[str], given: Mapping[str, str]) -> str:
    """Fill in these addresses and remove the parts that are not served."""
    text = _PART.sub(lambda part: part[3] if (part[2] in served) is (part[1] == "if") else "", text)
    return Template(text).substitute({name: html.escape(each) for name, each in given.items()})


def _with_code(text: str, files: StaticFiles) -> str:
    """Put the code of each step where the page has its place."""

    def shown(place: re.Match[str]) -> str:
        step = place[1]
        code = {
            each: html.escape(_text(files, f"steps/{step}.{each}").rstrip(), quote=False)
            for each in _LANGUAGES
        }
        return Template(_text(files, "steps/code.html").rstrip()).substitute(step=step, **code)

    return _CODE.sub(shown, text)


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
