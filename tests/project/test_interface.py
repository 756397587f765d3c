"""Every public name is imported from `holdfast`, and pages show no other names."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import client, interface
from tests.pages import ROOT, pages

PAGE = ROOT / "docs" / "how-to" / "extensions.md"
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
# In code on the page, but not ours: Python's own, headers, and a class of the example.
OTHERS = {"Authorization", "False", "Forwarded", "None", "Sleepers", "True"}
OTHERS |= {"SystemExit", "TypeError", "ValueError"}
# They mention former names, and designs that were rejected.
HISTORY = {"CHANGELOG.md", "architecture.md"}


def named_on(page: Path) -> set[str]:
    """Classes and constants in the code of a page."""
    code = re.findall(r"```python\n.*?```|`[^`\n]+`", page.read_text(), re.DOTALL)
    return set(re.findall(r"(?<![\w./-])[A-Z]\w+", "\n".join(code))) - OTHERS


def test_every_name_on_the_page_of_extensions_can_be_imported_from_holdfast() -> None:
    assert named_on(PAGE) >= {"ServerExtension", "SessionExtension", "Refused", "ServerApi"}
    assert named_on(PAGE) <= {*interface.__all__}
    for name in interface.__all__:
        assert getattr(holdfast, name) is getattr(interface, name)


def test_holdfast_knows_all_its_names_before_they_are_used() -> None:
    names = {*client.__all__, *interface.__all__}
    assert names < {*dir(holdfast)}
    code = "import holdfast, sys; print(*dir(holdfast)); assert 'asyncio' not in sys.modules"
    assert names < {*printed_by(code).split()}
    code = "before = {*globals()}; from holdfast import *; print(*{*globals()} - before)"
    assert {*printed_by(code).split()} - {"before"} == names


def test_a_star_imports_the_client_where_the_server_is_not_installed() -> None:
    # A module that is None in this table cannot be imported.
    code = "import sys; sys.modules['holdfast.interface'] = None"
    code += "; from holdfast import *; print(*dir())"
    names = {*printed_by(code).split()}
    assert names > {*client.__all__}
    assert not names & {*interface.__all__}


def printed_by(code: str) -> str:
    """What a new interpreter prints."""
    words = [sys.executable, "-c", code]
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_unknown_names_cannot_be_imported_from_holdfast() -> None:
    for name in ("Nonsense", "nonsense"):
        with pytest.raises(AttributeError, match=name):
            getattr(holdfast, name)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_import_only_public_names_of_holdfast(example: Path) -> None:
    code = example.read_text()
    imports = [each for each in ast.walk(ast.parse(code)) if isinstance(each, ast.ImportFrom)]
    imported = {name.name for each in imports if each.module == "holdfast" for name in each.names}
    # An extension is installed into the server; programs beside it need the client, or nothing.
    is_extension = "\ndef install(" in code
    assert imported <= {*(interface.__all__ if is_extension else client.__all__)}
    assert imported or not is_extension
    assert not re.search(r"(from|import) (holdfast\.|(app|extensions|pipeline)\b)", code)


@pytest.mark.parametrize(
    "page",
    [page for page in pages() if page.name not in HISTORY],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_pages_do_not_import_modules_by_their_folders(page: Path) -> None:
    text = page.read_text()
    assert not re.search(r"(?:from|import) (?:app|extensions|pipeline)\b", text)
    assert not re.search(r"(?:python -m app|`app\.\w)", text)


def test_the_server_interface_is_not_loaded_before_it_is_used() -> None:
    code = (
        "import sys, holdfast; assert 'holdfast.bayeux' not in sys.modules;"
        "holdfast.ServerApi; assert 'holdfast.bayeux' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
