"""The memory of large responses is kept for the next ones."""

import subprocess
import sys

# Six hundred responses of 10 KB at a time; prints how many pages all bursts but the first got anew.
BURSTS = """
import resource
from holdfast.cli import serve

def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def burst():
    waiting = [b"x" * 10_000 for _ in range(600)]

KEEP
burst()
before = pages()
for _ in range(20):
    burst()
print(pages() - before)
"""


def pages_of_bursts(keep: str) -> int:
    program = BURSTS.replace("KEEP", keep)
    words = [sys.executable, "-c", program]
    return int(subprocess.run(words, capture_output=True, check=True, text=True).stdout)


def test_bursts_of_large_responses_use_the_same_memory() -> None:
    assert pages_of_bursts("serve.keep_freed_memory()") < 500


def test_without_it_each_burst_gets_new_memory() -> None:
    assert pages_of_bursts("") > 5_000
