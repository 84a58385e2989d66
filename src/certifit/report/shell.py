"""What the library advises, in the words of the command line: its parameters as options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

from certifit.report.text import Table


def _types(column: str, word: str) -> str:
    """The option, quoted where a shell would not read it as one word."""
    return f"--types {shlex.quote(f'{column}={word}')}"


# Parameters of the library in a sentence, and the option that stands for them.
OPTIONS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"types=\{(?:'([^']*)'|column): '([\w-]+)'\}", lambda found: _types(found[1] or "COLUMN", found[2])),
    (r"\btypes\['([^']*)'\] must be", lambda found: f"{_types(found[1], 'KIND')}: KIND must be"),
    (r"\bbad_rows=(\d+)", r"--bad-rows \1"),
    (r"\bbad_rows=(?!\w)", "--bad-rows N"),
    (r"\bmissing=(?!\w)", "--na"),
    (r"\bsheet= takes", "--sheet takes"),
    (r"\bUse scan_excel for a workbook, or unpack it", "Rename a workbook to end in .xlsx, or unpack it"),
    (r"\bUse scan_parquet\b", "Rename it to end in .parquet"),
    (r"\bUse scan_arrow\b", "Rename it to end in .feather"),
    (r"\bencoding='([\w-]+)'", r"--encoding \1"),
    (r"\bencoding=(?!\w)", "--encoding"),
    (r"\bhas_header=False", "add --no-header"),
    (r"\babsent='keep'", "--na keep"),
    (r"\bunseen='(\w+)'", r"--unseen \1"),
    (r"\bshorter names or fewer columns\b", "shorter names, or fewer columns (--columns)"),
    (r"\bmax_levels\b", "--max-levels"),
    (r"\bmin_count\b", "--min-count"),
    (r"\bn_features_to_select=\((\d+), (\d+)\)", r"--features \1:\2"),
    (r"\bn_features_to_select=(\d+)", r"--features \1"),
    (r"\bfixed names\b", "--fixed names"),
    (r"\bshrinkage=([\d.]+)", r"--shrinkage \1"),
    (r"\(columns=, ", "(--columns, "),
    (r"\bleave it out \(columns=\)", "leave it out (--drop)"),
    (r"\(columns=\)", "(--columns)"),
    (r"; leave it out if it only numbers the rows\b", "; leave it out (--drop) if it only numbers the rows"),
    (r"\bcolumns=\[\.\.\.\]", "--columns"),
    (r"\bFor labels use a classifier\.", "For labels: --task classes."),
    (r"; redundant='drop' leaves the last one out\b", ""),  # a shell has no such option
    (r"\bmost_minutes must be\b", "--most-minutes must be"),
    (r"'neg_root_mean_squared_error' has no value", "the root mean squared error has no value"),
    (r"\btest_size=(\S+)", r"--holdout \1"),
    (r"\btest_size must be\b", "--holdout must be"),
    (r"\bcopies='(\w+)'", r"--copies \1"),
    (r"\bor tol to (\S+?)(?=[.,;]?(?:\s|$))", r"or --tol to \1"),
    (r"\bmax_iter, or least_fall\b", "--max-iter"),
    (r"\bmax_iter\b", "--max-iter"),
    (r"\bLogisticRegression\(alpha=0\)", "--model logistic --alpha 0"),
    (r"\bcovariance='shared'", "--model discriminant"),
    (r"\bUse a regressor, or convert y\b", "Use --task quantity, or convert the column"),
    (r"\balpha=(\S+) gives column\b", r"--smoothing \1 gives column"),
    (r" Or allow more: with certifit\.(?:memory|work)\(\S+\): \.\.\.", ""),  # a shell has no such way out
    (r"\bUse alpha > 0\b", "Use --smoothing above 0"),
    (r"\buse alpha near 1\b", "use --smoothing near 1"),
    (
        r"Negative values in data passed to MultinomialNB \(input X\): (.+?)\. Counts are >= 0",
        r"multinomial-nb reads counts, and a column holds \1. Leave it out (--drop), or use --model gaussian-nb",
    ),
)
# Sentences of a report that come from the library: (section, key).
SENTENCES = (
    ("data", "notes"), ("data", "file_notes"), ("validation", "notes"), ("validation", "sentences"),
    ("certificate", "fault"), ("certificate", "remedy"), ("certificate", "sentences"), ("coefficients", "reason"),
    ("coefficients", "notes"),
)  # fmt: skip


def as_options(sentence: str) -> str:
    """The sentence with what it advises as options of the command line.

    >>> as_options("it has 1,200 levels. Raise max_levels to keep it")
    'it has 1,200 levels. Raise --max-levels to keep it'
    """
    for pattern, option in OPTIONS:
        sentence = re.sub(pattern, option, sentence)
    return sentence


def in_shell_words(facts: Table) -> Table:
    """The facts of a report with the sentences of the library in the words of the command line."""
    for section, key in SENTENCES:
        if facts[section] is not None:
            facts[section] |= {key: _each(facts[section][key])}
    for column in facts["data"]["columns"]:
        column["reason"] = _each(column["reason"])
    return facts


def _each(words: Any) -> Any:
    if isinstance(words, list):
        return [_each(one) for one in words]
    return as_options(words) if isinstance(words, str) else words
