"""Wheels whose core is machine code, if this machine has a compiler; the sources go with it.

Elsewhere the core is interpreted, which takes more processor time and changes nothing else. A
build fails without machine code if COMPILE_CORE=always, and does not compile if COMPILE_CORE=never.
COMPILE_HOME, if it is set, keeps what was compiled for later builds of the same sources.
"""

import contextlib
import gzip
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from sysconfig import get_config_var, get_path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

if TYPE_CHECKING:
    from setuptools.command.build_ext import build_ext


# The number of files to compile. For each, the compiler reads the common headers, which are as long
# as many modules.
_FILES = 8


class Obstacle(Exception):
    """The core cannot be compiled here; the text says why, and what to do about it."""


class Build(BuildHookInterface[Any]):
    """Adds man pages and machine code to a wheel; refuses a source distribution without cometd.js.

    It writes no code beside the sources: there, old machine code would hide later changes of them.
    """

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what a build needs: tools to compile the core, and the imports of the commands."""
        if self.target_name == "sdist":
            return []
        tools = [] if _wanted() == "never" else ["mypy", "setuptools>=77"]
        # The client is among the sources.
        others = [
            each for each in self.metadata.core.dependencies if not each.startswith("holdfast-")
        ]
        return [*tools, *others]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if sys.version_info < (3, 11):  # noqa: UP036 - nobody else checks it for a build
            here = sys.version.split()[0]
            raise SystemExit(f"holdfast needs Python 3.11 or newer; this is {here}")
        if version == "editable":
            return
        self._check_pages()
        if self.target_name == "sdist":
            return
        self._temporary = mkdtemp()
        self._add_manual(Path(self._temporary), build_data)
        if _wanted() == "never":
            return
        # Not where the man pages are made: links of that folder lead into the sources.
        home = Path(os.environ.get("COMPILE_HOME") or Path(self._temporary, "compiled")).absolute()
        library = home / "library"
        try:
            layout = self._lay_out(home)
            # mypyc names modules by their paths from there.
            with contextlib.chdir(layout):
                modules = self._compile(library)
        except Obstacle as obstacle:
            if _wanted() == "always":
                raise SystemExit(f"the core cannot be compiled: {obstacle}") from obstacle
            sys.stderr.write(f"the core is not compiled and will take more time: {obstacle}\n")
            return
        build_data["tag"] = _tag()
        build_data["pure_python"] = False
        for path in modules:
            build_data["force_include"][path] = str(Path(path).relative_to(library))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_temporary"):
            shutil.rmtree(self._temporary)

    def _check_pages(self) -> None:
        pages = Path(self.root, "static/cometd")
        if self.target_name == "sdist" and not (pages / "cometd.js").exists():
            self._fetch_pages(pages)
        if (pages / "cometd.js").exists():
            return
        lack = "static/cometd has no cometd.js, which the chat needs"
        lack += ": install Node, then run make setup-pages"
        if self.target_name == "sdist":
            raise SystemExit(lack)
        sys.stderr.write(f"{lack}\n")

    def _fetch_pages(self, pages: Path) -> None:
        """Fetch cometd.js as `make setup-pages` does, if npm is here and reaches its registry."""
        npm, listed = shutil.which("npm"), Path(self.root, "static/npm")
        if npm is None or not listed.exists():
            return
        with TemporaryDirectory() as home:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(listed / name, home)
            words = [npm, "ci", "--prefix", home, "--no-audit", "--no-fund", "--loglevel=error"]
            # All words are the build's own.
            if subprocess.run(words).returncode:  # noqa: S603
                return
            pages.mkdir(exist_ok=True)
            package = Path(home, "node_modules/cometd")
            shutil.copy(package / "LICENSE", pages)
            for path in package.glob("*.js"):
                shutil.copy(path, pages)
                # The server prefers it.
                compressed = gzip.compress(path.read_bytes(), mtime=0)
                (pages / f"{path.name}.gz").write_bytes(compressed)

    def _add_manual(self, home: Path, build_data: dict[str, Any]) -> None:
        """Add the man pages, which are made from the commands."""
        package, manual = home / "holdfast", home / "man"
        manual.mkdir()
        self._show_package(package)
        words = [sys.executable, "-Bm", "holdfast.cli.manual", self.metadata.version, str(manual)]
        # All words are the build's own.
        made = subprocess.run(words, cwd=home, capture_output=True, text=True)  # noqa: S603
        if made.returncode:
            sys.stderr.write(f"the man pages are missing: {made.stderr.splitlines()[-1]}\n")
        for page in manual.iterdir():
            build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"

    def _compile(self, library: Path) -> list[str]:
        """Compile the modules into `library`, in the folders of the package; return their paths."""
        _find_tools()
        from mypyc.build import mypycify
        from setuptools import Distribution
        from setuptools.errors import BaseError

        build = library.parent
        _say("translating it to C")
        try:
            modules = mypycify(
                [*self._modules()],
                # Half the time of -O3, for code that runs as fast; with -Og it runs 4 % slower.
                opt_level="1",
                debug_level="0",
                multi_file=True,
                group_name="holdfast",
                target_dir=str(build),
            )
        except SystemExit as error:
            raise Obstacle("mypy refuses it, see above") from error
        # One library has all code; the other modules only refer to their part of it.
        code: Any = modules[0]
        # Its modules then call each other directly, not by the linker's tables: 6 % more
        # handshakes.
        code.extra_compile_args.append("-fvisibility=hidden")
        code.depends += code.sources
        code.sources = [*_joined(code.sources, build)]
        command: Any = Distribution({"ext_modules": modules}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(library), str(build / "objects")
        command.parallel = os.cpu_count()
        command.build_extensions = partial(_build_extensions, command)
        command.ensure_finalized()
        try:
            command.run()
        except BaseError as error:
            raise Obstacle(str(error)) from error
        outputs: list[str] = command.get_outputs()
        return outputs

    def _lay_out(self, build: Path) -> Path:
        """Make a folder that shows the package under the name that it will have."""
        layout = build / "layout"
        shutil.rmtree(layout, ignore_errors=True)
        layout.mkdir(parents=True)
        self._show_package(layout / "holdfast")
        (layout / "pyproject.toml").symlink_to(Path(self.root, "pyproject.toml"))
        return layout

    def _show_package(self, package: Path) -> None:
        """Make a folder of links to the parts of the package, as a wheel lays them out."""
        package.mkdir()
        root = Path(self.root)
        # Sources may be without the links that make them a package.
        parts = [path for path in (root / "app").iterdir() if not path.is_symlink()]
        for part in (*parts, root / "extensions", root / "pipeline", root / "static"):
            (package / part.name).symlink_to(part)

    def _modules(self) -> Iterator[str]:
        root, left_out = Path(self.root), set(self.config["interpreted"])
        for pattern in self.config["compiled"]:
            for path in sorted(root.glob(pattern)):
                if str(path.relative_to(root)) not in left_out and path.name != "__init__.py":
                    part = path.relative_to(root)
                    is_app = part.parts[0] == "app"
                    yield str("holdfast" / (part.relative_to("app") if is_app else part))


def _joined(sources: Sequence[str], build: Path) -> Iterator[str]:
    """Write a few files that include these sources, and yield them; leave unchanged ones alone."""
    for number in range(_FILES):
        file = build / f"joined{number}.c"
        names = [Path(source).name for source in sources[number::_FILES]]
        text = "".join(f'#include "{name}"\n' for name in names)
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        yield str(file)


def _build_extensions(command: "build_ext") -> None:
    """Build as the command does, in less time; only now does the command have its compiler."""
    _compile_header(command)
    _compile_side_by_side(command)
    type(command).build_extensions(command)


def _compile_header(command: "build_ext") -> None:
    """Parse Python's headers once for all files, most of which contain little else."""
    home = Path(command.build_temp, "include")
    home.mkdir(parents=True, exist_ok=True)
    header = home / "Python.h"
    header.write_text(f'#include "{get_path("include")}/Python.h"\n')
    compiler: Any = command.compiler
    paths = [f"-I{path}" for path in compiler.include_dirs]
    flags = command.extensions[0].extra_compile_args
    compiler.spawn([*compiler.compiler_so, *paths, *flags, "-x", "c-header", str(header)])
    compiler.include_dirs.insert(0, str(home))


def _compile_side_by_side(command: "build_ext") -> None:
    """Compile the files of a module at the same time, as the command does with modules."""
    one_by_one = command.compiler.compile

    def compile_all(sources: Sequence[str], **options: object) -> list[str]:
        if len(sources) > 1:
            _say("compiling it, which takes one to three minutes")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            each = pool.map(lambda source: one_by_one([source], **options), sources)
            objects: list[str] = []
            for done, made in enumerate(each, 1):
                objects += made
                if len(sources) > 1:
                    _say(f"compiled {done} of {len(sources)} files")
            return objects

    command.compiler.compile = compile_all


def _tag() -> str:
    """Return for which machines the wheel is.

    Machine code needs the C library of this machine, or a newer one, and nothing else. An index
    refuses wheels of Linux whose names do not say that.
    """
    tags = [*map(str, sys_tags())]
    return next((tag for tag in tags if "manylinux" in tag or "musllinux" in tag), tags[0])


def _say(progress: str) -> None:
    sys.stderr.write(f"the core: {progress}\n")


def _wanted() -> str:
    return os.environ.get("COMPILE_CORE", "")


def _find_tools() -> None:
    if not (find_spec("mypyc") and find_spec("setuptools")):
        raise Obstacle("mypy and setuptools are not installed beside hatchling")
    compiler = shlex.split(os.environ.get("CC") or get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        raise Obstacle(f"there is no C compiler {compiler!r}; install gcc")
    header = Path(get_path("include"), "Python.h")
    if not header.exists():
        raise Obstacle(f"{header} is missing; install python3-dev")
