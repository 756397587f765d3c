"""Runs the lines of the Dockerfile without a container engine.

Each stage begins with a root made by `debootstrap`. Each line that changes it is a layer of
overlayfs above the others, and runs in namespaces of its own. Layers without sources of ours are
kept for the next run. In place of the images of FROM are Debian's own Python, and the Node of this
machine.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.container import ROOT, read_dockerfile

HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast" / "image"
_KEPT_S = 7 * 86_400
# What the images of Python and Node have beyond Debian's smallest root.
_PACKAGES = "python3,python3-venv,libpython3-dev,ca-certificates,libstdc++6"
_CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# How package managers reach their indexes on this machine.
_OF_NETWORK = re.compile(
    r"pip_(?!find_links)\w+|npm_config_\w+|\w+_proxy|ssl_cert_file|node_extra_ca_certs",
    re.IGNORECASE,
)
# Where a build finds what an earlier one has compiled.
_COMPILED = "/var/cache/compiled"
# All mounts end with the namespace.
_ENTER = """set -eu
mount -t overlay overlay -o "$1" "$2"
mount --rbind /dev "$2/dev"
mount -t proc proc "$2/proc"
merged=$2 binds=$3 loopback=$4
shift 4
for each in $binds; do
    mkdir -p "$merged/${each#*:}"
    mount --bind "${each%%:*}" "$merged/${each#*:}"
done
[ -z "$loopback" ] || python3 -c "$loopback"
exec "$@"
"""
# Sets the flag UP of `lo`: SIOCSIFFLAGS with a `struct ifreq`.
_LOOPBACK = (
    "import fcntl, socket, struct;"
    "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh22x', b'lo', 1))"
)


@dataclass
class Stage:
    """A file system, and what its next command finds there. Layers begin with the lowest one."""

    layers: list[Path]
    key: str
    is_kept: bool = True
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    words: dict[str, str] = field(default_factory=dict)
    folder: str = "/"

    def inside(self, merged: str, words: Sequence[str], user: str = "0:0") -> list[str]:
        """What runs a command in a root, with the environment of this stage and no other."""
        given = [f"{name}={value}" for name, value in self.environment.items()]
        enter = ["chroot", f"--userspec={user}", merged, "/usr/bin/env", f"--chdir={self.folder}"]
        return [*enter, "--ignore-environment", *given, *words]

    def owner(self) -> str:
        """The user of its last instruction, with the group that the image has given it."""
        user = self.words["USER"]
        files = [layer / "etc/passwd" for layer in reversed(self.layers)]
        accounts = next(path for path in files if path.exists()).read_text().splitlines()
        [group] = [line.split(":")[3] for line in accounts if line.split(":")[2] == user]
        return f"{user}:{group}"


class Builder:
    """Builds the stages; layers that are not kept are in `home`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._stages: dict[str, Stage] = {}
        self._stage = Stage([], "")

    def build(self) -> Stage:
        """The last stage."""
        for keyword, text in read_dockerfile():
            match keyword:
                case "FROM":
                    image, *alias = text.split()
                    self._stage = Stage([base_of(image)], image)
                    self._stages[alias[-1] if alias else ""] = self._stage
                case "WORKDIR":
                    self._stage.folder = text
                case "ENV":
                    self._set(text)
                case "RUN":
                    self._run(text)
                case "COPY":
                    self._copy(text.split())
                case _:
                    self._stage.words[keyword] = text
        return self._stage

    def _set(self, text: str) -> None:
        environment = self._stage.environment
        for name, value in re.findall(r"(\w+)=(\S+)", text):
            environment[name] = re.sub(r"\$(\w+)", lambda found: environment[found[1]], value)

    def _run(self, line: str) -> None:
        stage = self._stage
        network = {name: os.environ[name] for name in os.environ if _OF_NETWORK.fullmatch(name)}
        compiled = HOME / "compiled"
        compiled.mkdir(exist_ok=True)
        with self._layer(line) as upper, tempfile.TemporaryDirectory() as merged:
            if upper is None:
                return
            variables = {**network, "COMPILE_HOME": _COMPILED}
            words = ["env", *(f"{name}={value}" for name, value in variables.items())]
            # A failing line says so on standard error, which pytest shows.
            subprocess.run(
                entered(
                    stage.layers,
                    merged,
                    stage.inside(merged, [*words, "/bin/sh", "-c", line]),
                    upper=upper,
                    binds={str(compiled): _COMPILED},
                ),
                check=True,
                stdin=subprocess.DEVNULL,
            )

    def _copy(self, words: list[str]) -> None:
        option, *others = words
        *sources, target = others if option.startswith("--from=") else words
        folder = (Path(self._stage.folder) / target).relative_to("/")
        if option.startswith("--from="):
            return self._copy_of_stage(self._stages[option[7:]], sources, folder)
        files = [(path, to) for source in sources for path, to in context(source)]
        digest = hashlib.sha256()
        for path, to in files:
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            digest.update(b"%s\0%d\0%s" % (str(to).encode(), len(content), content))
        self._stage.is_kept &= "." not in sources
        with self._layer(f"COPY {words} {digest.hexdigest()}") as upper:
            for path, to in files if upper else ():
                assert upper is not None
                (upper / folder / to).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, upper / folder / to, follow_symlinks=False)
        return None

    def _copy_of_stage(self, other: Stage, sources: list[str], folder: Path) -> None:
        self._stage.is_kept &= other.is_kept
        with (
            self._layer(f"COPY {other.key} {sources}") as upper,
            tempfile.TemporaryDirectory() as merged,
        ):
            if upper is None:
                return
            (upper / folder).mkdir(parents=True)
            # Of a folder, what is in it.
            script = 'for each in $0; do [ ! -d "$each" ] || each=$each/.; cp -a "$each" "$1"; done'
            found = " ".join(f"{merged}{source}" for source in sources)
            words = ["sh", "-euc", script, found, str(upper / folder)]
            subprocess.run(entered(other.layers, merged, words), check=True)

    @contextmanager
    def _layer(self, line: str) -> Iterator[Path | None]:
        """A folder for what an instruction changes, or `None` if an earlier run has it."""
        stage = self._stage
        stage.key = hashlib.sha256(f"{stage.key}\n{line}".encode()).hexdigest()[:16]
        layer = (HOME if stage.is_kept else self._home) / stage.key
        if layer.exists():
            yield None
        else:
            with whole(layer) as part:
                yield part
        os.utime(layer)
        stage.layers.append(layer)


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """A folder that gets its name when it is complete."""
    part = Path(tempfile.mkdtemp(prefix="part-", dir=folder.parent))
    part.chmod(0o755)
    try:
        yield part
        part.rename(folder)
    finally:
        for rest in (part, work_of(part)):
            shutil.rmtree(rest, ignore_errors=True)


def work_of(upper: Path) -> Path:
    """Where overlayfs prepares what it puts into a layer."""
    return upper.with_name(f"{upper.name}.work")


def base_of(image: str) -> Path:
    """The lowest layer for an image of Python or Node on Debian."""
    name, _, tag = image.partition(":")
    release = next(part for part in tag.split("-") if part.isalpha() and part != "slim")
    node = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    made_of = hashlib.sha256(f"{_PACKAGES} {node if name == 'node' else ''}".encode())
    base = HOME / f"{name}-{release}-{made_of.hexdigest()[:8]}"
    if not base.exists():
        with whole(base) as root:
            if name == "node":
                subprocess.run(["cp", "-a", f"{base_of(f'python:{release}')}/.", root], check=True)
                put_node_into(root)
            else:
                words = ["--variant=minbase", f"--include={_PACKAGES}", release, str(root)]
                subprocess.run(["debootstrap", *words], check=True, stdout=subprocess.DEVNULL)
                (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
                # This machine may reach indexes by a proxy with a certificate of its own.
                shutil.copy(f"/{_CERTIFICATES}", root / _CERTIFICATES)
    os.utime(base)
    return base


def put_node_into(root: Path) -> None:
    node, npm = (Path(str(shutil.which(name))).resolve() for name in ("node", "npm"))
    shutil.copy(node, root / "usr/local/bin/node")
    # bin/npm-cli.js in the folder of npm.
    shutil.copytree(npm.parents[1], root / "usr/local/lib/npm", symlinks=True)
    (root / "usr/local/bin/npm").symlink_to(f"../lib/npm/bin/{npm.name}")


def entered(
    layers: Sequence[Path],
    merged: str,
    words: Sequence[str],
    *,
    upper: Path | None = None,
    binds: dict[str, str] | None = None,
    is_alone: bool = False,
) -> list[str]:
    """What runs a command beside these layers, at `merged`; alone, it has its own network."""
    overlay = f"lowerdir={':'.join(str(layer) for layer in reversed(layers))}"
    if upper is not None:
        work_of(upper).mkdir(exist_ok=True)
        overlay += f",upperdir={upper},workdir={work_of(upper)}"
    namespaces = ["--mount", "--pid", *(["--net", "--ipc", "--uts"] if is_alone else [])]
    enter = ["unshare", *namespaces, "--fork", "--kill-child", "sh", "-c", _ENTER, "enter"]
    bound = " ".join(f"{there}:{here}" for there, here in (binds or {}).items())
    return [*enter, overlay, merged, bound, _LOOPBACK if is_alone else "", *words]


def context(source: str) -> Iterator[tuple[Path, Path]]:
    """The files of the build context at `source`, with their places in what they are copied to."""
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    ignored = [rule for rule in rules if rule and rule[0] not in "!#" and rule != "*"]
    starts = [ROOT / name for name in allowed] if source == "." else [ROOT / source]
    top = ROOT / source if (ROOT / source).is_dir() else (ROOT / source).parent
    for start in starts:
        assert start.relative_to(ROOT).parts[0] in allowed
        for path in files_of(start):
            parts = path.relative_to(ROOT)
            places = [str(each) for each in (parts, *parts.parents)]
            if not any(
                fnmatch(f"./{each}", f"*/{rule.removeprefix('**/')}")
                if rule[:3] == "**/"
                else fnmatch(each, rule)
                for each in places
                for rule in ignored
            ):
                yield path, path.relative_to(top)


def files_of(start: Path) -> Iterator[Path]:
    """All files, and links as such, at this path and below it."""
    if start.is_symlink() or start.is_file():
        yield start
        return
    for folder, folders, files in os.walk(start):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        yield from (Path(folder, name) for name in (*files, *links))


@contextmanager
def built(home: Path) -> Iterator[Stage]:
    """The image. Others who build it wait; what nobody has used for a week is removed."""
    for name in ("debootstrap", "unshare", "node", "npm"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed: make setup-debian")
    may = ["unshare", "--mount", "--pid", "--net", "--fork", "true"]
    if os.geteuid() or subprocess.run(may, capture_output=True).returncode:
        pytest.skip("only root may make file systems and namespaces here")
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Builder(home).build()
        for path in HOME.iterdir():
            if path.is_dir() and path.stat().st_mtime < time.time() - _KEPT_S:
                shutil.rmtree(path, ignore_errors=True)


class Container:
    """A running container: a root that cannot be changed, a volume, and a network of its own."""

    def __init__(self, stage: Stage, home: Path) -> None:
        self.stage = stage
        self._merged = tempfile.mkdtemp(dir=home)
        self.volume, temporary = home / "volume", home / "tmp"
        for folder, mode in ((self.volume, 0o700), (temporary, 0o1777)):
            folder.mkdir()
            folder.chmod(mode)
        user, group = map(int, stage.owner().split(":"))
        os.chown(self.volume, user, group)
        binds = {str(self.volume): stage.words["VOLUME"], str(temporary): "/tmp"}
        words = stage.inside(self._merged, json.loads(stage.words["CMD"]), stage.owner())
        self.log = home / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                entered(stage.layers, self._merged, words, binds=binds, is_alone=True),
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def first(self) -> str:
        """The number of its first process outside."""
        number = self.process.pid
        return Path(f"/proc/{number}/task/{number}/children").read_text().strip()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command as `docker exec` does."""
        enter = ["nsenter", "--target", self.first(), "--mount", "--pid", "--net", "--ipc", "--uts"]
        inside = self.stage.inside(f"/proc/{self.first()}/root", words, self.stage.owner())
        return subprocess.run([*enter, *inside], capture_output=True, text=True)

    def stop(self) -> int:
        """Stop it as `docker stop` does; return its exit code."""
        subprocess.run(["kill", "-TERM", self.first()], check=True)
        return self.process.wait(60)
