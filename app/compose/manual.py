"""Where the documentation is, as pages and replies name it."""

from pathlib import Path

import holdfast
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
