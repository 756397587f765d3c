"""The wording of a failure: its text without what is particular to one message.

The journal must not contain the content of messages, and failures with the same cause should look
alike. So only plain words of a text stay: words of lower-case letters, and the first one of a
sentence. All else becomes a star: numbers, names, identifiers, and quoted parts.
"""

import re
from functools import lru_cache
from typing import Final

# The length of a wording, and of the part of the text that it is made of.
LONGEST: Final = 80
_READ: Final = 200
# A longer one is no word of any language that has spaces.
_LONGEST_WORD: Final = 24
_STAR: Final = "*"
# What opens a quoted part, and what closes it.
_QUOTES: Final = (
    ('"', '"'),
    ("'", "'"),
    ("`", "`"),
    ("\u2018", "\u2019"),
    ("\u201c", "\u201d"),
    ("\u201e", "\u201c\u201d"),
    ("«", "»"),
)
# A mark within a word is an apostrophe. A part that is not closed may go on behind the text.
_PARTS: Final = [rf"{opens}.*?(?:[{closes}](?!\w)|$)" for opens, closes in _QUOTES]
_QUOTED: Final = re.compile(rf"(?<!\w)(?:{'|'.join(_PARTS)})", re.DOTALL)
# What may stand within a word, and behind it.
_WITHIN: Final = {ord(mark): None for mark in "-'\u2019"}
_BEHIND: Final = ".,:;!?…"
_STARS: Final = re.compile(r"\*(?:[\s.,:;!?…]*\*)+")


def wording_of(text: str) -> str | None:
    """Return the wording of a text; None if there are no words in it."""
    return _wording(text[:_READ]) if text else None


@lru_cache(maxsize=1000)
def _wording(text: str) -> str | None:
    words: list[str] = []
    begins = True
    for given in _QUOTED.sub(_STAR, text).split():
        words.append(_shown(given, begins=begins))
        begins = given[-1] in ".!?"
    shown = _STARS.sub(_STAR, " ".join(words))[:LONGEST].rstrip()
    return shown if any(map(str.isalpha, shown)) else None


def _shown(given: str, *, begins: bool) -> str:
    """Return a word if it is plain, else a star; marks behind it stay."""
    word = given.removeprefix("(").rstrip(_BEHIND + ")")
    # A text may begin with the name of an exception, or with an application's error code.
    parts = word.split(".") if begins else [word]
    if all(map(_is_word, parts)) and (begins or word == word.lower()):
        return given
    return _STAR + given[len(given.rstrip(_BEHIND)) :]


def _is_word(part: str) -> bool:
    return len(part) <= _LONGEST_WORD and part.translate(_WITHIN).isalpha()
