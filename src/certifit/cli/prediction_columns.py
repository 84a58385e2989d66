"""What stands beside predictions: columns of the data that are kept, and labels by a threshold that the user gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from certifit.data.roles import refuse_unknown


def kept_columns(names: Sequence[str], there: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The columns to keep that the model does not read, which a scan must read too. Refuses unknown names."""
    for name in names:
        refuse_unknown(name, there, "--keep: the data")
    return [name for name in names if name not in wanted]


def with_kept(predicted: tuple[Iterator[Any], Any], source: Any, names: Sequence[str]) -> tuple[Iterator[Any], Any]:
    """The predictions with the kept columns in front, as they are in the data: rows in the same order."""
    import pyarrow as pa

    batches, schema = predicted
    if not names:
        return predicted
    if twice := sorted(set(names) & set(schema.names)):
        raise click.UsageError(f"--keep {twice[0]}: the predictions have a column of that name.")
    fields = [source.schema.field(name).remove_metadata() for name in names]
    whole = pa.schema([*fields, *schema])

    def joined() -> Iterator[Any]:
        rows = _runs(source.select(names).stretches())
        for batch in batches:
            kept = rows.take(batch.num_rows)
            yield pa.RecordBatch.from_arrays([*(kept.column(name) for name in names), *batch.columns], schema=whole)

    return joined(), whole


class _runs:
    """Rows of tables, taken so many at a time."""

    def __init__(self, blocks: Iterator[Any]) -> None:
        self.blocks, self.held = blocks, None

    def take(self, n_rows: int) -> Any:
        """The next rows as one batch."""
        import pyarrow as pa

        while self.held is None or self.held.num_rows < n_rows:
            more = next(self.blocks).X
            self.held = more if self.held is None else pa.concat_tables([self.held, more])
        taken, self.held = self.held.slice(0, n_rows), self.held.slice(n_rows)
        return taken.combine_chunks().to_batches(max_chunksize=max(n_rows, 1))[0]


@dataclass(frozen=True)
class Threshold:
    """Of two classes: `place` is predicted where its probability is at least `least`."""

    place: int
    least: float

    @staticmethod
    def of(written: str | None, fitted: Any) -> Threshold | None:
        """From LABEL=P, or P of the second class."""
        if written is None:
            return None
        from certifit.models.adapter import answer_of
        from certifit.models.learner import Answer

        answer = answer_of(fitted)
        if not answer.is_class or len(fitted.classes_) != 2 or answer is Answer.MARGINS:
            raise click.UsageError("--threshold is for probabilities of two classes, which this model does not have.")
        label, _, number = written.rpartition("=")
        labels = [str(one) for one in fitted.classes_.tolist()]
        if label and label not in labels:
            raise click.UsageError(f"--threshold names the label {label!r}, which is none of the two of the model.")
        try:
            least = float(number)
        except ValueError:
            least = -1.0
        if not 0 <= least <= 1:
            raise click.UsageError(f"--threshold is LABEL=P with P from 0 to 1, such as yes=0.2. Got {written!r}.")
        return Threshold(labels.index(label) if label else 1, least)

    def labels(self, probabilities: Any, classes: Any) -> list[Any]:
        """One label per row."""
        is_there = probabilities[:, self.place] >= self.least
        both = classes.tolist()
        return [both[self.place] if there else both[1 - self.place] for there in is_there.tolist()]


@dataclass(frozen=True)
class Costs:
    """Of classes: predicted is what costs least on average. of_class: what a wrong prediction costs for its rows."""

    of_class: Any

    @staticmethod
    def of(written: str | None, fitted: Any) -> Costs | None:
        """From LABEL=C,LABEL=C."""
        if written is None:
            return None
        import numpy as np

        from certifit.cli.by_label import costs_of
        from certifit.models.adapter import answer_of
        from certifit.models.learner import Answer

        answer = answer_of(fitted)
        if not answer.is_class or answer is Answer.MARGINS:
            raise click.UsageError("--costs needs probabilities of classes, which this model does not have.")
        labels = fitted.classes_.tolist()
        costs = costs_of(written, labels) or {}
        return Costs(np.array([costs[label] for label in labels]))

    def labels(self, probabilities: Any, classes: Any) -> list[Any]:
        """One label per row."""
        from certifit.evaluation.metrics.costs import cheapest

        every = classes.tolist()
        return [every[place] for place in cheapest(probabilities, self.of_class).tolist()]
