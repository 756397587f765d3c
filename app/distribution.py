"""What this package is called where packages are installed: not `holdfast`, which is another's.

The client is a distribution of its own, which the server's requires: together they are the package.
"""

import json
import shlex
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

NAME = "holdfast-bayeux"
CLIENT = "holdfast-bayeux-client"
# Ours until 0.3. On the Python index, it is another project, which has a folder `holdfast`, too.
EARLIER_NAME = "holdfast"
# Whether an index has it, so that its name alone installs it.
PUBLISHED = False
# What stands for a wheel of which this installation does not know where it is.
_SOME_WHEEL = "file:///….whl"


def release() -> str:
    """Return the version that is installed."""
    try:
        return version(NAME)
    except PackageNotFoundError:
        return version(CLIENT)


def core() -> str:
    """Say whether the core is compiled."""
    found = find_spec("holdfast.bayeux.exchanges")
    is_source = found is None or str(found.origin).endswith(".py")
    return "interpreted" if is_source else "compiled"


def install_command(extra: str = "") -> str:
    """Return the command that adds the server to this installation, and perhaps one of its extras.

    It names this Python, because the pip of another one would install into another environment.
    """
    name = f"{NAME}[{extra}]" if extra else NAME
    return f"{_pip()} install '{name}{_source(NAME)}'"


def published(file: str) -> str | None:
    """Return the address of a file of the sources; None if these are not public."""
    if not PUBLISHED:
        return None
    links = distribution(NAME).metadata.get_all("Project-URL", [])
    source = dict(each.split(", ", 1) for each in links).get("Source")
    return source and f"{source}/blob/v{release()}/{file}"


def clash() -> str | None:
    """Say what keeps the package from being whole, and how to mend it."""
    return _name_clash() or _version_clash()


def _version_clash() -> str | None:
    """Say that client and server are of two versions, as if pip was asked to update one of them."""
    try:
        client = version(CLIENT)
    except PackageNotFoundError:  # the sources have both
        return None
    if client == release():
        return None
    return (
        f"{CLIENT} {client} is installed beside {NAME} {release()}, which needs {release()}: "
        "install both in one version"
    )


def _name_clash() -> str | None:
    """Say which other distribution has the folder `holdfast` as well, and how to get rid of it.

    Whichever is removed first takes files of the other one with it.
    """
    try:
        found = distribution(EARLIER_NAME)
    except PackageNotFoundError:
        return None
    remedy = f"{_pip()} uninstall --yes {EARLIER_NAME} && {_again()}"
    if _is_ours(found):
        return (
            f"Holdfast {found.version} is still installed here by its earlier name, "
            f"{EARLIER_NAME}; it is called {NAME} now: {remedy}"
        )
    summary = found.metadata.json.get("summary", "no summary")
    return (
        f"{EARLIER_NAME} {found.version} is installed here, which is another project's "
        f"({summary}) and has files of the same names: {remedy}"
    )


def _is_ours(found: Distribution) -> bool:
    about = found.metadata.json
    return any("bayeux" in str(about.get(each)).lower() for each in ("summary", "keywords"))


def _again() -> str:
    """The command that puts back the files that have gone; other packages stay as they are."""
    both = " ".join(f"'{name}{_source(name)}'" for name in (CLIENT, NAME))
    return f"{_pip()} install --force-reinstall --no-deps {both}"


def _pip() -> str:
    return f"{shlex.quote(sys.executable)} -m pip"


def _source(name: str) -> str:
    """Where pip finds this distribution of ours, behind its name."""
    return "" if PUBLISHED else f" @ {_origin(name) or _SOME_WHEEL}"


def _origin(name: str) -> str | None:
    """The wheel or the folder that pip installed, if it is still there."""
    try:
        about = distribution(name).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    if about is None:
        return None
    # It loads much that a server does not need.
    from urllib.request import url2pathname

    url = str(json.loads(about)["url"])
    parts = urlsplit(url)
    is_there = parts.scheme == "file" and Path(url2pathname(parts.path)).exists()
    return url if is_there else None
