"""What keeps the pipeline from working, in words that say what to do."""

import re
import shlex
import sys

# The pip of this Python, in which Holdfast is: no index has it, so that no other would find it.
INSTALL = f"{shlex.quote(sys.executable)} -m pip install 'holdfast[pipeline]'"


class PipelineFailed(Exception):
    """It cannot be done; the text is for people."""


_FULL = "the disk is full: make room, and give the command again"
_NO_MEMORY = "Spark has too little memory: try --conf spark.driver.memory=4g"
_ENDED = "Spark's Java has ended before its work; if it was killed for want of memory, give it less"
# What others say, and what it is to whoever gave the command.
_KNOWN = {
    "No space left on device": _FULL,
    "Disk quota exceeded": _FULL,
    "Java heap space": _NO_MEMORY,
    "GC overhead limit": _NO_MEMORY,
    "Answer from Java side is empty": _ENDED,
    "All masters are unresponsive": "no master answers there: does one run where --master says?",
    "FILE_NOT_EXIST": "files went away while they were read: give the command again",
}
# Whose faults are told in words.
_OTHERS = frozenset(("pyspark", "py4j", "pyarrow", "grpc"))
_CAUSE = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)*\w*(?:Exception|Error): (.+)$", re.MULTILINE)

_QUERY = re.compile(r"terminated with exception: (.+?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
# What is in a text that is not meant for people.
_LONG = ("\tat ", "=== Streaming Query ===")


def is_of_others(error: Exception) -> bool:
    """Whether Spark, or what it runs on, or the machine complains: that is no fault of ours."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _OTHERS


def in_words(error: Exception) -> str:
    """One sentence: what we said ourselves where it went wrong, or what others mean."""
    if isinstance(error, PipelineFailed):
        text = str(error)
        return in_short(text) if any(sign in text for sign in _LONG) else text
    if isinstance(error, ConnectionError):
        # Our own store is asked elsewhere, and named.
        return _ENDED
    if isinstance(error, OSError) and error.strerror:
        text = _KNOWN.get(error.strerror, error.strerror)
        return f"{error.filename}: {text}" if error.filename else text
    return in_short(_text(error))


def in_short(text: str) -> str:
    """The same of a long text with the traces of many programs."""
    _, ours, reason = text.partition(f"{PipelineFailed.__name__}: ")
    if ours:
        return reason.partition("\n")[0]
    for sign, words in _KNOWN.items():
        if sign in text:
            return words
    causes = _CAUSE.findall(text) or _QUERY.findall(text)
    first, _, _ = text.strip().partition("\n")
    return f"Spark: {causes[-1] if causes else first}"


def _text(error: Exception) -> str:
    try:
        # Spark tells the causes apart from what it says of itself.
        return f"{error}\n{getattr(error, '_stackTrace', '')}"
    except Exception:
        # It is to be asked of a Java that has ended.
        return _ENDED
