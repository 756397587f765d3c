"""The page on production shows settings that a server takes, and checks that a server passes."""

import re
import subprocess
import textwrap
import tomllib
from urllib.parse import urlsplit

from holdfast.settings import Settings
from tests.pages import ROOT, USUAL_PLACE
from tests.serving import Servers, environment

PAGE = (ROOT / "docs" / "how-to" / "production.md").read_text("utf-8")
LIMIT_S = 60


def test_a_server_takes_the_settings_of_the_page() -> None:
    [block] = re.findall(r"^ +```toml\n(.*?)^ +```$", PAGE, re.DOTALL | re.MULTILINE)
    settings = tomllib.loads(textwrap.dedent(block))
    assert Settings(**settings).host_name == ["push.example.org"]


def test_other_hosts_and_foreign_pages_get_the_status_that_the_page_names(servers: Servers) -> None:
    place = urlsplit(servers.with_settings({}).url).netloc
    checks = re.findall(r"^\| [^|]+ gets (\d+) \| `(curl [^`]+)` \|$", PAGE, re.MULTILINE)
    assert [status for status, _ in checks] == ["421", "403"]
    for status, command in checks:
        assert USUAL_PLACE in command
        done = subprocess.run(
            ["sh", "-c", command.replace(USUAL_PLACE, place)],
            env=environment() | {"no_proxy": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        assert done.stdout.startswith(f"HTTP/1.1 {status} ")
