"""The metadata of distributions links to where the project is when it is built, or nowhere."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from readme_renderer import markdown

from hatch_metadata import Metadata, address_of, urls_at, with_links_to, without_links
from tests.pages import ROOT

ADDRESS = "https://git.example/them/holdfast"
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "remote",
    [
        "https://git.example/them/holdfast",
        "https://git.example/them/holdfast.git",
        "https://git.example/them/holdfast/",
        "https://joe:secret@git.example/them/holdfast.git",
        "https://t@ken@git.example/them/holdfast.git",
        "http://git.example/them/holdfast.git",
        "git://git.example:9418/them/holdfast.git",
        "ssh://git@git.example/them/holdfast.git",
        "ssh://git@git.example:2222/them/holdfast.git",
        "git@git.example:them/holdfast.git",
        "git.example:them/holdfast",
    ],
)
def test_a_remote_of_a_public_host_leads_to_the_address_of_its_pages(remote: str) -> None:
    assert address_of(remote) == ADDRESS


def test_the_port_of_a_remote_over_https_is_that_of_its_pages() -> None:
    remote = "https://joe@git.example:8443/them/holdfast.git"
    assert address_of(remote) == "https://git.example:8443/them/holdfast"


@pytest.mark.parametrize(
    "remote",
    [
        "",
        "/srv/git/holdfast.git",
        "../holdfast",
        "holdfast.git",
        "C:/them/holdfast",
        "file:///srv/git/holdfast.git",
        "file://git.example/them/holdfast.git",
        "https://localhost/them/holdfast.git",
        "https://10.0.0.1/them/holdfast.git",
        "https://[::1]/them/holdfast.git",
        "http://git.example:3000/them/holdfast.git",
        "git@work:them/holdfast.git",
        "git@git.example:/srv/git/holdfast.git",
        "https://git.example",
        "https://git.example/them/hold fast",
        "https://git.example/them/holdfast\nLicense: other",
    ],
)
def test_a_remote_that_names_no_public_page_leads_nowhere(remote: str) -> None:
    assert address_of(remote) == ""


def metadata_in(root: Path) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    Metadata(str(root), {}).update(metadata)
    return metadata


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of a public repository, outside of a service that builds."""
    for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    words = ["git", "-C", str(tmp_path), "remote", "add", "origin", f"{ADDRESS}.git"]
    subprocess.run(words, check=True)
    (tmp_path / "README.md").write_text("[changes](CHANGELOG.md)\n")
    return tmp_path


def test_a_build_in_a_clone_links_to_its_origin(clone: Path) -> None:
    metadata = metadata_in(clone)
    assert metadata["urls"]["Source"] == ADDRESS
    assert metadata["readme"]["text"] == f"[changes]({ADDRESS}/blob/main/CHANGELOG.md)\n"


def test_a_build_in_a_clone_of_a_workflow_of_another_project_links_to_its_origin(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "others/product")
    assert metadata_in(clone)["urls"]["Source"] == ADDRESS


def test_a_build_without_an_origin_on_github_links_to_the_repository_of_the_workflow(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "-C", str(clone), "remote", "remove", "origin"], check=True)
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "us/holdfast")
    assert metadata_in(clone)["urls"]["Source"] == "https://github.example/us/holdfast"


def test_a_build_from_a_source_distribution_does_not_link_to_the_repository_around_it(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone / "PKG-INFO").touch()
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "others/product")
    assert metadata_in(clone)["urls"] == {}


def test_a_build_without_git_or_an_origin_has_no_links(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "-C", str(clone), "remote", "remove", "origin"], check=True)
    without_origin = metadata_in(clone)
    monkeypatch.setenv("PATH", "/nowhere")
    assert metadata_in(clone) == without_origin
    assert without_origin["urls"] == {}
    assert without_origin["readme"]["text"] == "changes\n"


def test_every_link_of_the_readme_in_metadata_is_absolute_and_leads_to_a_file() -> None:
    text = with_links_to(ADDRESS, README)
    links = re.findall(r'\]\(([^)]*)\)|\b(?:src|srcset)="(docs/[^"]*|https:[^"]*)"', text)
    ours = [link.removeprefix(ADDRESS) for link in map("".join, links) if ADDRESS in link]
    assert ours
    for link in ours:
        path = re.sub("^/(blob|raw)/main/|#.*", "", link)
        assert (ROOT / path).exists(), link


@pytest.mark.parametrize("page", ["README.md", "client/README.md"])
@pytest.mark.parametrize("address", [ADDRESS, ""])
def test_an_index_shows_the_readme_without_a_link_or_picture_that_it_lacks(
    page: str, address: str
) -> None:
    text = (ROOT / page).read_text("utf-8")
    shown = markdown.render(with_links_to(address, text) if address else without_links(text))
    assert shown
    shown_links = re.findall(r'\b(?:href|src|srcset)="([^"]*)"', shown)
    # The index gives each heading a link to itself.
    assert [link for link in shown_links if not re.match("https?://|#user-content-", link)] == []
    # Nothing is left of what was taken out.
    assert "](" not in re.sub(r"<pre.*?</pre>|<code.*?</code>", "", shown, flags=re.DOTALL)


def test_links_to_files_leave_their_words_where_there_is_no_address() -> None:
    page = "a [`b` c](docs/d.md#e), [f](#g), [h](https://i.example) ![j](docs/k.png)"
    assert without_links(page) == "a `b` c, f, [h](https://i.example) "
    picture = '<picture>\n<source srcset="docs/a.png">\n<img src="docs/b.png">\n</picture>\n\n'
    assert without_links(f"{picture}text") == "text"


def test_urls_of_pages_lead_to_files() -> None:
    pages = [url.partition("/blob/main/")[2] for url in urls_at(ADDRESS).values()]
    assert {*filter(None, pages)} == {"CHANGELOG.md", "README.md", "SECURITY.md"}
    for page in pages:
        assert (ROOT / page).exists()
