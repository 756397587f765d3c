"""What users import has one name, and the pages name nothing else."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import client, interface
from tests.pages import ROOT, pages

PAGE = ROOT / "docs" / "extensions.md"
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
# In code on the page, but not ours: Python's own, headers, and a class of the example.
OTHERS = {"Authorization", "False", "Forwarded", "None", "Sleepers", "True"}
OTHERS |= {"SystemExit", "TypeError", "ValueError"}
# They tell of the names that there were, and of the way not taken.
HISTORY = {"CHANGELOG.md", "architecture.md"}


def named_on(page: Path) -> set[str]:
    """Classes and constants in the code of a page."""
    code = re.findall(r"```python\n.*?```|`[^`\n]+`", page.read_text(), re.DOTALL)
    return set(re.findall(r"(?<![\w./-])[A-Z]\w+", "\n".join(code))) - OTHERS


def test_all_that_is_explained_to_authors_of_extensions_can_be_imported_from_holdfast() -> None:
    assert named_on(PAGE) >= {"ServerExtension", "SessionExtension", "Refused", "ServerApi"}
    assert named_on(PAGE) <= {*interface.__all__}
    for name in interface.__all__:
        assert getattr(holdfast, name) is getattr(interface, name)


def test_unknown_names_cannot_be_imported_from_holdfast() -> None:
    for name in ("Nonsense", "nonsense"):
        with pytest.raises(AttributeError, match=name):
            getattr(holdfast, name)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_examples_import_from_holdfast_alone(example: Path) -> None:
    code = example.read_text()
    imports = [each for each in ast.walk(ast.parse(code)) if isinstance(each, ast.ImportFrom)]
    imported = {name.name for each in imports if each.module == "holdfast" for name in each.names}
    # An extension is installed into the server; programs beside it need the client, or nothing.
    is_extension = "\ndef install(" in code
    assert imported <= {*(interface.__all__ if is_extension else client.__all__)}
    assert imported or not is_extension
    assert not re.search(r"(from|import) (holdfast\.|(app|extensions|pipeline)\b)", code)


@pytest.mark.parametrize(
    "page", [page for page in pages() if page.name not in HISTORY], ids=lambda path: path.name
)
def test_pages_name_no_module_by_its_folder(page: Path) -> None:
    text = page.read_text()
    assert not re.search(r"(?:from|import) (?:app|extensions|pipeline)\b", text)
    assert not re.search(r"(?:python -m app|`app\.\w)", text)


def test_the_interface_is_loaded_when_it_is_asked_for_and_not_before() -> None:
    code = (
        "import sys, holdfast; assert 'holdfast.bayeux' not in sys.modules;"
        "holdfast.ServerApi; assert 'holdfast.bayeux' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
