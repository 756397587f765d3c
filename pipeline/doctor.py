"""What there is of what the pipeline needs, and how well it works."""

import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from pipeline.class_archive import archive_for, make_archive
from pipeline.failures import PipelineFailed
from pipeline.java import Java, find_java, look_for_java
from pipeline.session import Engine, open_session

_PACKAGES = ("pyspark", "pyarrow", "pandas", "redis")


class Sight(NamedTuple):
    """One thing that was looked at; `ok` is None where it does not matter."""

    thing: str
    ok: bool | None
    text: str


def examine() -> Iterator[Sight]:
    """All that is needed, and whether it is there."""
    for package in _PACKAGES:
        yield _package(package)
    used: Java | None = None
    for place in look_for_java():
        if isinstance(place, Java):
            is_used = used is None
            used = used or place
            text = f"{place.version} in {place.home}" + ("" if is_used else " (not used)")
            yield Sight(f"Java: {place.origin}", True if is_used else None, text)
        else:
            yield Sight(f"Java: {place.origin}", None, place.reason)
    if used is None:
        yield Sight("Java", False, _complaint())
    elif _package("pyspark").ok:
        yield _archive(used)


def try_out(engine: Engine) -> Iterator[Sight]:
    """Start Spark and let it count, with the time that it takes."""
    begin = time.perf_counter()
    spark = open_session(engine)
    started = time.perf_counter()
    yield Sight("start of Spark", True, f"{started - begin:.1f} s, version {spark.version}")
    try:
        spark.range(1000).count()
        yield Sight("first answer", True, f"{time.perf_counter() - started:.1f} s")
    finally:
        spark.stop()


def prepare() -> Sight:
    """Make what lets Spark start sooner."""
    java = find_java()
    make_archive(java)
    return _archive(java)


def _package(name: str) -> Sight:
    try:
        return Sight(name, True, version(name))
    except PackageNotFoundError:
        return Sight(name, False, "missing: pip install 'holdfast[pipeline]'")


def _archive(java: Java) -> Sight:
    place = archive_for(java)
    if place.exists():
        return Sight("archive of classes", True, str(place))
    if not java.can_archive:
        return Sight("archive of classes", None, "this Java cannot make one: Spark starts slower")
    text = "none yet: holdfast pipeline doctor --prepare makes it"
    return Sight("archive of classes", None, text)


def _complaint() -> str:
    try:
        find_java()
    except PipelineFailed as failed:
        return str(failed)
    return ""
