"""What a family of models tells the file: its record, how a model is written and read, and its data on a verify."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from certifit.certificates.certificate import Certificate
from certifit.modelfile.maps import Maps
from certifit.modelfile.schema import Spec

Arrays = dict[str, NDArray[Any]]
Metadata = dict[str, Any]


@dataclass(frozen=True)
class Parts:
    """All that a file holds beside numbers, checked: nothing in it contradicts the rest."""

    maps: Maps
    certificate: Certificate
    extra: Any = None  # what one family has beside the others


@dataclass(frozen=True)
class Family:
    """How the models of one kind are written and read.

    fitted: what the metadata says of a fit, given itself. dump: metadata and arrays of a model. read: the parts of
    checked metadata and arrays, or a ModelFileError. build: the model of its class, metadata, arrays and parts.
    settings: parameters that a file has in another form than the model. size: rows and sum of weights on a verify.
    describe: what an inspection shows of it: "coefficients", "classes" or "components", and more on the "model".
    """

    fitted: Callable[[Metadata], Mapping[str, Spec]]
    dump: Callable[[Any], tuple[Metadata, Arrays]]
    read: Callable[[Metadata, Arrays], Parts]
    build: Callable[[type[Any], Metadata, Arrays, Parts], Any]
    settings: Callable[[Any], dict[str, Any]]
    size: Callable[[Any, Any, Any, Any], tuple[int, float]]
    describe: Callable[[Metadata, Arrays, Parts], dict[str, Any]]


def summed_size(source: Any, size: Callable[[Any], tuple[int, float]] | None = None) -> tuple[int, float]:
    """Rows of a source and the sum of their weights."""
    n_rows, sum_weight = (sum(part) for part in zip(*source.map(size or _size), strict=True))
    return n_rows, sum_weight


def _size(run: Any) -> tuple[int, float]:
    return run.n_rows, float(run.n_rows if run.weight is None else run.weight.sum())
