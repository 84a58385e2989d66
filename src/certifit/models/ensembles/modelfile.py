"""What a file stores of a model of models, beside the models."""

from __future__ import annotations

from collections.abc import Iterator

from certifit.models.record import LABELLED, TARGET_NAME, Content, Problems, Record


def _problems(content: Content) -> Iterator[Problems]:
    """Estimators that are not copies of one classifier of 0 and 1, for every class, on the same columns."""
    n_classes, metadata = content.metadata["labels"]["count"], [child.metadata for child in content.children]
    first = metadata[0]
    yield {
        "fewer than two classes": n_classes < 2,
        "not one estimator for every class": len(metadata) != (1 if n_classes == 2 else n_classes),
        "estimators that are not of two classes, 0 and 1": any(
            child.labels is None or child.labels.tolist() != [0, 1] for child in content.children
        ),
        "estimators that differ in more than their fit": any(
            (child["estimator"], child["parameters"], child.get("features"), child.get("basis"))
            != (first["estimator"], first["parameters"], first.get("features"), first.get("basis"))
            for child in metadata
        ),
    }


RECORD = LABELLED | Record(fields=TARGET_NAME, children="estimators_", checks=(_problems,), finish="_take_names")
