"""Names as the report prints them: no level, word or label that fewer rows hold than `data.privacy` asks for."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.privacy import FEWEST, NOT_SHOWN, Mask, Rule, quoted_labels, rare_label
from certifit.maps.table.gaps import reference_rows, rows_apart, told_names
from certifit.report import text


@dataclass(frozen=True)
class Printed:
    """The rule, the printed names of the fitted columns, and which of them tell of too few rows to be printed.

    labels: of the classes; is_rare_label: those of too few rows. mask: takes what is not printed out of sentences.
    """

    rule: Rule
    columns: list[str]
    is_rare: Array
    labels: list[str] = field(default_factory=list)
    is_rare_label: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))
    mask: Mask = field(default_factory=Mask)

    @staticmethod
    def of(model: Any, rule: Rule, class_rows: Array | None = None) -> "Printed":
        """Of a fitted model; class_rows: rows of each of its classes."""
        mask = Mask()
        encoder = model.encoder_
        if encoder is not None and not rule.shows:
            mask.hide(*told_names(encoder))
        names = [str(name) for name in model.column_names_]
        columns = [mask(name) for name in names] if mask.secrets else names
        is_rare = np.array([one != name for one, name in zip(columns, names, strict=True)], dtype=bool)
        if encoder is not None and not rule.shows:
            is_rare = _are_terms_rare(model.basis_, rows_apart(encoder) < FEWEST, len(names))
        labels, is_rare_label = _labels(model, rule, class_rows, mask)
        return Printed(rule, columns, is_rare, labels, is_rare_label, mask)

    @property
    def n_rare(self) -> int:
        """Fitted columns that are not printed."""
        return int(self.is_rare.sum())

    def reference(self, kind: Any, surveyed: Any) -> tuple[str, bool]:
        """The reference level of a category as it is printed, and whether too few rows hold it."""
        is_rare = not self.rule.may_print(reference_rows(kind, surveyed))
        return NOT_SHOWN if is_rare else str(kind.reference), is_rare


def _are_terms_rare(basis: Any, is_rare: Array, n_terms: int) -> Array:
    """Which fitted columns are made of an encoded column that too few rows decide."""
    if basis is None:
        return is_rare
    exponents = getattr(basis, "exponents_", None)  # functions of the user's own may read every column
    return np.full(n_terms, is_rare.any()) if exponents is None else (exponents[:, is_rare] > 0).any(axis=1)


def _labels(model: Any, rule: Rule, class_rows: Array | None, mask: Mask) -> tuple[list[str], Array]:
    labels = [] if class_rows is None else model.classes_.tolist()
    rows = np.array([] if class_rows is None else class_rows)
    is_rare = np.array([not rule.may_print(n_rows) for n_rows in rows], dtype=bool)
    if is_rare.any():
        mask.hide(quoted_labels(dict(zip(labels, rows.tolist(), strict=True))))
    printed = [rare_label(k + 1, len(labels)) if is_rare[k] else str(label) for k, label in enumerate(labels)]
    return printed, is_rare


def pooled_words(n_levels: int, noun: str = "level", nouns: str | None = None) -> str:
    """What stands for levels that are not printed.

    >>> pooled_words(3)
    '3 levels held by fewer than 5 rows each: not shown'
    """
    each = " each" if n_levels > 1 else ""
    return f"{text.plural(n_levels, noun, nouns)} held by fewer than {FEWEST} rows{each}: not shown"
