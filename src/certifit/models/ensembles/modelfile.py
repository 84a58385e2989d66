"""What a file stores of a model of models, beside the models."""

from __future__ import annotations

from collections.abc import Iterator

from certifit.models.record import (
    LABELLED,
    NUMBER,
    ROWS,
    TARGET_NAME,
    Content,
    Field,
    OrNull,
    Problems,
    Record,
)


def _problems(content: Content) -> Iterator[Problems]:
    """Estimators that are not copies of one classifier of 0 and 1, for every class, on the same columns."""
    n_classes, metadata = content.metadata["labels"]["count"], [child.metadata for child in content.children]
    yield {
        "fewer than two classes": n_classes < 2,
        "not one estimator for every class": len(metadata) != (1 if n_classes == 2 else n_classes),
        "estimators that are not of two classes, 0 and 1": any(
            child.labels is None or child.labels.tolist() != [0, 1] for child in content.children
        ),
        "estimators that differ in more than their fit": differ(content),
    }


def differ(content: Content) -> bool:
    """Whether the estimators are not copies of one estimator on the same columns; a sample may lack levels of them."""
    kinds = [
        (
            *(child.metadata.get(part) for part in ("estimator", "parameters", "features")),
            child.metadata.get("encoder") is None and child.columns,
        )
        for child in content.children
    ]
    bases = [child.metadata.get("basis") for child in content.children]
    return any(kind != kinds[0] for kind in kinds) or any(basis != bases[0] for basis in bases)


def _bagging_problems(content: Content) -> Iterator[Problems]:
    """Estimators that are not as many copies of one, or are of classes that there are not; errors out of range."""
    metadata, parameters = content.metadata, content.parameters
    ends = [metadata[name] for name in ("oob_low", "oob_error", "oob_high")]
    is_there = [end is not None for end in ends]
    yield {
        "more estimators than were asked for": len(content.children) > parameters["n_estimators"],
        "estimators that differ in more than their fit": differ(content),
        "an out-of-bag error without its interval": any(is_there) != all(is_there),
    }
    numbers = [end for end in ends if end is not None]
    most = 1.0 if content.labels is not None else float("inf")
    yield {
        "an out-of-bag error outside its interval, or below 0": numbers != sorted(numbers)
        or any(not 0 <= end <= most for end in numbers),
    }
    if content.labels is None:
        yield {"an estimator of classes": any(child.labels is not None for child in content.children)}
        return
    places = [None if child.labels is None else child.labels.tolist() for child in content.children]
    yield {
        "estimators of classes that there are not": any(
            labels is None or not set(labels) <= set(range(len(content.labels))) for labels in places
        )
    }


def _interval(content: Content) -> tuple[float, float] | None:
    low, high = content.metadata["oob_low"], content.metadata["oob_high"]
    return None if low is None else (low, high)


RECORD = LABELLED | Record(fields=TARGET_NAME, children="estimators_", checks=(_problems,), finish="_take_names")
_BAGGING = Record(
    fields={
        "data": ROWS,
        "oob_error": Field(OrNull(NUMBER), "oob_error_"),
        "oob_high": Field(OrNull(NUMBER), get=lambda model: model.oob_interval_ and model.oob_interval_[1]),
        "oob_low": Field(OrNull(NUMBER), get=lambda model: model.oob_interval_ and model.oob_interval_[0]),
        **TARGET_NAME,
    },
    derived={"oob_interval_": _interval},
    children="estimators_",
    checks=(_bagging_problems,),
    finish="_take_names",
)
BAGGING_CLASSIFIER = LABELLED | _BAGGING
BAGGING_REGRESSOR = _BAGGING
