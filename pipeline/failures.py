"""Failures of the pipeline, with texts that say what to do."""

import re

from holdfast.distribution import install_command

# The extras: all of it, and what suffices without Spark and Java.
WHOLE, WITHOUT_SPARK = "pipeline", "pipeline-local"


class PipelineFailed(Exception):
    """The pipeline cannot work; the text is for users."""


class NotInstalled(PipelineFailed):
    """A package of the pipeline is missing."""

    def __init__(self, package: str) -> None:
        super().__init__(f"the pipeline needs {package}: {install_command(WITHOUT_SPARK)}")


class JournalFailed(PipelineFailed):
    """A journal cannot be read on; an ingest has another remedy than other readers."""

    remedy = ""

    @property
    def reason(self) -> str:
        return super().__str__()

    def __str__(self) -> str:
        return f"{self.reason}. {self.remedy}"


class FramesGone(JournalFailed):
    """Frames are missing, and loss is not accepted."""

    remedy = "Use --accept-loss to continue without them; the audit keeps reporting it"


class JournalTrimmed(JournalFailed):
    """The frames of a planned batch were trimmed before they were read."""

    remedy = "--accept-loss cannot help; ingest into a new --lake"


class StoreChanged(JournalFailed):
    """The store is not the one whose frames were read."""

    remedy = (
        "Name another --lake. If this store is the same, but was emptied, use --accept-loss; the "
        "audit keeps reporting it"
    )


class QueryStopped(PipelineFailed):
    """Another user of the session stopped the query of an ingest: Spark tells no error then."""

    def __init__(self) -> None:
        super().__init__(
            "somebody stopped Spark's query of this ingest; its last complete batch is in the "
            "tables: run the command again"
        )


_FULL = "the disk is full: make room, then run the command again"
_NO_MEMORY = "Spark has too little memory: try --conf spark.driver.memory=4g"
_NO_ROOM = "the temporary folder is full: make room there, or name another one in TMPDIR"
_TOO_LARGE = (
    "the question needs more memory than DuckDB may take: give it more, as in --memory 8GiB, ask "
    "about less with --since, or use --engine spark"
)
_ENDED = (
    "Spark's Java process died: run the command again; nothing is lost. If it was killed for lack "
    "of memory, give it less with --conf spark.driver.memory=1g"
)
# Errors of other packages, and what they mean to the user.
_KNOWN = {
    "No space left on device": _FULL,
    "Disk quota exceeded": _FULL,
    # DuckDB calls this a lack of memory, too.
    "failed to offload": _NO_ROOM,
    "Out of Memory Error": _TOO_LARGE,
    "Java heap space": _NO_MEMORY,
    "GC overhead limit": _NO_MEMORY,
    "Answer from Java side is empty": _ENDED,
    "Python worker failed to connect back": (
        "Spark's Python did not answer within ten seconds: run the command again, or let "
        "PYSPARK_PYTHON name a Python that has Holdfast and pyspark"
    ),
    "waiting for the Python worker to connect": (
        "this machine is too busy to start Python within Spark's ten seconds: run the command again"
    ),
    "All masters are unresponsive": "no master answers at the address in --master: start it",
    "Concurrent transaction failed": (
        "another process has changed the tables meanwhile: run the command again; nothing is lost"
    ),
    "FILE_NOT_EXIST": "files were removed while they were read: run the command again",
}
# The modules of other packages' errors whose first line suffices, with the packages' names.
_PLAIN = {"_duckdb": "DuckDB", "_internal": "deltalake"}
# The packages whose errors are explained.
_OTHERS = frozenset(("pyspark", "py4j", "pyarrow", "grpc", *_PLAIN))
_CAUSE = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)*\w*(?:Exception|Error): (.+)$", re.MULTILINE)

# A text with this is not meant for users.
_LONG = "\tat "


def is_of_others(error: Exception) -> bool:
    """Return whether Spark, its libraries or the machine caused the error, not Holdfast."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _OTHERS


def in_words(error: Exception) -> str:
    """Return one sentence: the text of our own error, or the meaning of another package's."""
    if isinstance(error, PipelineFailed):
        text = str(error)
        return in_short(text) if _LONG in text else text
    if isinstance(error, ConnectionError):
        # Errors of the store are handled and named elsewhere.
        return _ENDED
    name = _PLAIN.get(type(error).__module__)
    if isinstance(error, OSError) and not error.strerror and error.args:
        # What a server of buckets told it.
        name = "Arrow"
    if name is not None:
        first, _, _ = str(error).partition("\n")
        return next((words for sign, words in _KNOWN.items() if sign in first), f"{name}: {first}")
    if isinstance(error, OSError) and error.strerror:
        text = _KNOWN.get(error.strerror, error.strerror)
        return f"{error.filename}: {text}" if error.filename else text
    return in_short(_text(error))


def in_short(text: str) -> str:
    """Return the essential line of a long text with stack traces."""
    _, ours, reason = text.partition(f"{PipelineFailed.__name__}: ")
    if ours:
        return reason.partition("\n")[0]
    for sign, words in _KNOWN.items():
        if sign in text:
            return words
    causes = _CAUSE.findall(text)
    first, _, _ = text.strip().partition("\n")
    return f"Spark: {causes[-1] if causes else first}"


def _text(error: Exception) -> str:
    try:
        # Spark reports the causes separately from its own text.
        return f"{error}\n{getattr(error, '_stackTrace', '')}"
    except Exception:
        # The text would have to be fetched from a Java that has ended.
        return _ENDED
