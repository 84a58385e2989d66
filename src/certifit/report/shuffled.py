"""What a model leans on that has neither coefficients nor splits: how far predictions move when a column is shuffled.

The values of one column of the table are dealt out anew among some rows, the other columns stay. Of a quantity: the
root mean square of the change of the prediction; of classes: the probability that moves from one class to another, or,
of a model without probabilities, the share of rows that change their class. No target is asked for: it tells what the
model does, not what is true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from certifit.data.columns import Array
from certifit.data.view import Target
from certifit.models.adapter import answer_of
from certifit.models.learner import Answer
from certifit.report import svg, text
from certifit.report.facts import Fit
from certifit.report.passes import drawn_rows, with_offset
from certifit.report.text import Table

# What tells of columns in another way.
TOLD = ("coefficients", "splits", "words", "odds", "mapped odds", "spreads")
MOST_ROWS = 400  # that are predicted, once per column
MOST_COLUMNS = 100  # of the table; more would take longer than the fit
DRAWN = 15
NAME = 24
_SEED = 33


def shuffled_facts(fit: Fit) -> Table | None:
    """None of a model that tells it otherwise, and where there are fewer than two columns or very many."""
    names = _used(fit)
    if any(section in TOLD for section in fit.sections) or not 2 <= len(names) <= MOST_COLUMNS:
        return None
    X, offset = _rows(fit)
    n_rows = 0 if X is None else X.shape[0]
    if n_rows < 2:
        return None
    answer, move = _way(fit)
    before = answer(X, offset)
    dealt = np.random.default_rng(_SEED).permutation(n_rows)
    moves = [move(before, answer(_with_column(X, name, fit.source.names, dealt), offset)) for name in names]
    order = np.argsort(-np.array(moves), kind="stable")
    columns = [{"name": names[j], "moves": float(moves[j])} for j in order[:DRAWN]]
    facts = {"columns": columns, "n_other": len(names) - len(columns), "n_rows": n_rows}
    return facts | {"what": _WORDS[_kind(fit)], "sentences": _sentences(columns, _kind(fit))}


def _used(fit: Fit) -> list[str]:
    """Columns of the table that the model reads."""
    encoder = fit.model.encoder_
    if encoder is None:
        return list(fit.source.names)
    return [name for name, _ in encoder.groups_]


def _rows(fit: Fit) -> tuple[Any, Array | None]:
    """Some rows, in their order, dense where they are no table, and their offsets."""
    share = min(1.0, MOST_ROWS / max(fit.seen.n_rows, 1))
    parts, offsets = [], []
    for block in fit.source.reading(Target.NONE).stretches():
        kept = np.flatnonzero(drawn_rows(block.first_row, block.X.shape[0], block.weight, share))
        rows = block.X.take(kept) if isinstance(block.X, pa.Table) else block.X[kept]
        parts.append(rows.toarray() if hasattr(rows, "toarray") else rows)
        if block.offset is not None:
            offsets.append(block.offset[kept])
    if not parts:
        return None, None
    together = pa.concat_tables(parts) if isinstance(parts[0], pa.Table) else np.concatenate(parts)
    return together, np.concatenate(offsets) if offsets else None


def _with_column(X: Any, name: str, names: list[str], dealt: Array) -> Any:
    """The rows with the values of one column in another order."""
    if isinstance(X, pa.Table):
        place = X.schema.get_field_index(name)
        return X.set_column(place, X.schema.field(place), X.column(place).take(pa.array(dealt)))
    other, place = np.array(X), names.index(name)
    other[:, place] = other[dealt, place]
    return other


def _kind(fit: Fit) -> str:
    if fit.by_class is None:
        return "quantity"
    return "labels" if answer_of(fit.model) is Answer.MARGINS else "classes"


def _way(fit: Fit) -> tuple[Callable[[Any, Array | None], Array], Callable[[Array, Array], float]]:
    """What the model answers to rows, and how far two of its answers are apart."""
    kind = _kind(fit)
    ask = fit.model.predict_proba if kind == "classes" else fit.model.predict

    def answer(X: Any, offset: Array | None) -> Array:
        rows, options = with_offset(fit.source, X, offset)
        return np.asarray(ask(rows, **options))

    return answer, _APART[kind]


def _root_mean_square(before: Array, after: Array) -> float:
    change = after - before
    size = float(np.abs(change).max())
    return size * float(np.sqrt(np.mean((change / size) ** 2))) if size > 0 else 0.0


_APART: dict[str, Callable[[Array, Array], float]] = {
    "quantity": _root_mean_square,
    "classes": lambda before, after: float(np.abs(after - before).sum(axis=1).mean() / 2),
    "labels": lambda before, after: float(np.mean(before != after)),
}
_WORDS = {
    "quantity": "change of the prediction",
    "classes": "probability that moves, %",
    "labels": "rows that change their class, %",
}


def _sentences(columns: list[Table], kind: str) -> list[str]:
    first = columns[0]
    if not first["moves"] > 0:
        return ["No column moves a prediction: every row gets the same answer."]
    name = text.visible(first["name"], 60)
    moved = {
        "quantity": f"predictions move by {text.number(first['moves'], 3)} (root mean square)",
        "classes": f"{text.percent(first['moves'])} of the probability moves to another class",
        "labels": f"{text.percent(first['moves'])} of the rows change their class",
    }
    return [
        f"Where the values of {name} are dealt out anew among the rows and all else stays, {moved[kind]}. Columns that "
        "say the same stand in for each other: what moves little may still matter."
    ]


def draw_shuffled(context: dict[str, Any]) -> str:
    """Bars, the column that moves most first."""
    facts = context["shuffled"]
    rows = [] if facts is None else facts["columns"]
    most = max((row["moves"] for row in rows), default=0.0)
    if not most > 0:
        return ""
    unit = 100.0 if facts["what"].endswith("%") else 1.0
    longest = max(len(text.visible(row["name"], NAME)) for row in rows)
    bottom = 10 + 21.0 * len(rows)
    left = 14 + svg.CHARACTER * longest
    frame = svg.Frame((0.0, 1.04 * unit * most), (len(rows) - 0.5, -0.5), left, top=8.0, bottom=bottom)
    body = [svg.x_axis(frame, facts["what"])]
    for k, row in enumerate(rows):
        y, zero, x = frame.py(k), frame.px(0.0), frame.px(unit * row["moves"])
        body.append(
            f'<text class="name" x="{frame.left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">'
            f"{svg.escape(row['name'], NAME)}</text>"
            f'<rect class="bar" x="{zero:.1f}" y="{y - 6:.1f}" width="{max(x - zero, 0.5):.1f}" height="12"/>'
        )
    words = "; ".join(f"{text.visible(row['name'], 40)} {text.number(unit * row['moves'], 3)}" for row in rows)
    return svg.document("shuffled", "How far predictions move", words, body, height=bottom + 46)
