"""Where the documentation is, as pages and replies name it."""

from pathlib import Path

import holdfast
from holdfast.bayeux.wire.errors import PAGE
from holdfast.delivery.basics.notices import ERRORS
from holdfast.distribution import published
from holdfast.settings import Settings
from holdfast.web.site.documentation import PREFIX, Documentation, find_documentation, is_built

PAGES = Path(holdfast.__file__).parent / "static"


def docs_url(settings: Settings) -> str:
    """Return the URL of the documentation; empty if there is none, or it is not wanted."""
    return "" if settings.docs_url == PREFIX and not is_built(PAGES) else settings.docs_url


def served_docs(settings: Settings) -> Documentation | str:
    """Return the documentation that is served here, or its URL."""
    url = docs_url(settings)
    return find_documentation(PAGES) or "" if url == PREFIX else url


def errors_for_clients(settings: Settings) -> str:
    """Return the page of errors as clients find it; empty without documentation."""
    url = docs_url(settings)
    return f"{url}{PAGE}" if url else ""


def errors_page(settings: Settings, own_url: str) -> str:
    """Return where the page of errors is: here, elsewhere, as published, or in the sources."""
    page = errors_for_clients(settings)
    # A Unix socket has no address for browsers.
    if docs_url(settings) == PREFIX and own_url.startswith("http"):
        return f"{own_url}{page}"
    return page or published(ERRORS) or ERRORS
