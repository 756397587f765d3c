"""Checks what the pipeline needs, and how well it works."""

import shutil
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from holdfast.distribution import install_command
from holdfast.pipeline.class_archive import archive_for, make_archive
from holdfast.pipeline.failures import WHOLE, WITHOUT_SPARK, PipelineFailed
from holdfast.pipeline.java import Java, NoJava, find_java, look_for_java, no_java
from holdfast.pipeline.session import Engine, open_session

_ARCHIVE = "archive of classes"
# What reports, audits and `--engine local` need.
_PACKAGES = ("deltalake", "duckdb", "numpy", "obstore", "pyarrow", "pytz", "redis")
# Those that only the pipeline has.
_OWN = ("deltalake", "duckdb", "pyarrow")
_OF_SPARK = ("pyspark", "pandas")


class Check(NamedTuple):
    """One check; `ok` is None if the result does not matter."""

    name: str
    ok: bool | None
    text: str


def examine() -> Iterator[Check]:
    """Check everything that the pipeline needs, first whether it is installed."""
    if not any(_package(package, WITHOUT_SPARK).ok for package in _OWN):
        text = f"not installed: {install_command(WITHOUT_SPARK)}"
        yield Check("packages", False, f"{text}; with Spark and Java: {install_command(WHOLE)}")
        return
    for package in _PACKAGES:
        yield _package(package, WITHOUT_SPARK)
    yield from _spark()


def _spark() -> Iterator[Check]:
    """Check what only `--engine spark` needs."""
    if not _package(_OF_SPARK[0], WHOLE).ok:
        text = f"not installed, so use --engine local; to install it: {install_command(WHOLE)}"
        yield Check("Spark", None, text)
        return
    for package in _OF_SPARK:
        yield _package(package, WHOLE)
    yield _shell()
    places = [*look_for_java()]
    used = next((place for place in places if isinstance(place, Java)), None)
    for place in places:
        yield _java(place, is_used=place is used)
    if used is None:
        yield Check("Java", False, no_java([each for each in places if isinstance(each, NoJava)]))
    else:
        yield _archive(used)


def _java(place: Java | NoJava, *, is_used: bool) -> Check:
    name = f"Java: {place.origin}"
    if isinstance(place, NoJava):
        return Check(name, None, place.reason)
    text = f"{place.version} in {place.home}"
    return Check(name, True, text) if is_used else Check(name, None, f"{text} (not used)")


def _shell() -> Check:
    place = shutil.which("bash")
    return Check("bash", place is not None, place or "missing, and Spark's start script needs it")


def try_out(engine: Engine) -> Iterator[Check]:
    """Start Spark and let it count; report the time."""
    begin = time.perf_counter()
    try:
        spark = open_session(engine)
    except PipelineFailed as failed:
        yield Check("start of Spark", False, str(failed))
        return
    started = time.perf_counter()
    yield Check("start of Spark", True, f"{started - begin:.1f} s, version {spark.version}")
    try:
        spark.range(1000).count()
        yield Check("first answer", True, f"{time.perf_counter() - started:.1f} s")
    finally:
        spark.stop()


def prepare() -> Check:
    """Make the class archive, if everything that it needs is installed."""
    java = find_java()
    if java.can_archive and not make_archive(java):
        return Check(_ARCHIVE, False, "it could not be created: --start shows whether Spark works")
    return _archive(java)


def _package(name: str, extra: str) -> Check:
    try:
        return Check(name, True, version(name))
    except PackageNotFoundError:
        return Check(name, False, f"missing: {install_command(extra)}")


def _archive(java: Java) -> Check:
    place = archive_for(java)
    if place.exists():
        return Check(_ARCHIVE, True, str(place))
    if not java.can_archive:
        return Check(_ARCHIVE, None, "this Java cannot create one: Spark starts more slowly")
    text = "none, and none is needed; --prepare makes one where Spark starts often"
    return Check(_ARCHIVE, None, text)
