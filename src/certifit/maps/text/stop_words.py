"""Words that say little about what a text is about.

The English list holds the closed classes of the grammar: articles, pronouns, prepositions, conjunctions, auxiliary
verbs, and the pieces that \\w leaves of contractions ("they'll" is they, ll). Negations (no, not, nor, never, and what
is left of "don't" and "isn't") and modal verbs of doubt are not in it, because they decide what a sentence claims.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from certifit.runtime import core

_SHOWN = 5

_ENGLISH = """
a an the this that these those
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
herself it its itself they them their theirs themselves who whom whose which what
about after against among around as at before behind between by during for from in into of off on onto out over
since through to toward towards under until up upon via with within
and but if or so than then though because while when where whether
am is are was were be been being do does did doing done has have had having will would shall should
also here how just such there too very
ll re ve
"""
ENGLISH = frozenset(_ENGLISH.split())


def stop_words(given: Any, lowercase: bool) -> list[str]:
    """The words to leave out, sorted; "english" is the list above."""
    if given is None:
        return []
    if isinstance(given, str):
        if given != "english":
            raise ValueError(f"stop_words must be None, 'english' or a list of words. Got {given!r}.")
        return sorted(ENGLISH)
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise TypeError(f"stop_words must be None, 'english' or a list of words. Got {given!r}.")
    words = list(given)
    if wrong := [word for word in words if not isinstance(word, str)]:
        raise TypeError(f"stop_words must be texts. Got {wrong[0]!r}.")
    return sorted({word.lower() if lowercase else word for word in words})


def warn_of_idle(words: list[str]) -> None:
    """A stop word that is no single run of word characters ("don't") is never met."""
    read = core.words(words, (False, 1, 1, 1))
    idle = [word for word, own in zip(words, read, strict=True) if own != [word]]
    if idle:
        shown = ", ".join(map(repr, idle[:_SHOWN])) + (", ..." if len(idle) > _SHOWN else "")
        warnings.warn(
            f"{len(idle)} of {len(words)} stop words are not one word and leave out nothing: {shown}. "
            "Give the words that their texts are cut into.",
            UserWarning,
            stacklevel=4,
        )
