"""Huber regression in a file: the scale of the residuals that its certificate speaks of."""

from __future__ import annotations

from collections.abc import Iterator

from certifit.models.least_squares.modelfile import LEAST_SQUARES, NAMED
from certifit.models.record import Check, Content, Field, Problems, Record

SCALE = Check("a finite float > 0", lambda value: type(value) is float and 0 < value < float("inf"), float)


def _problems(content: Content) -> Iterator[Problems]:
    asked, delta = content.parameters["scale"], content.parameters["delta"]
    used = content.metadata["robust"]["scale"]
    yield {
        f"scale {asked!r} asked and {used!r} used": not isinstance(asked, str) and float(asked) != used,
        f"delta {delta!r} with a joint scale": asked == "joint" and not delta > 1,
        "standard errors under Huber's loss": content.metadata["inference"] is not None,
    }


RECORD = (
    LEAST_SQUARES
    | NAMED
    | Record(
        switches=("standardize",),
        fields={"robust": {"scale": Field(SCALE, "scale_")}},
        derived={"n_iter_": lambda content: content.metadata["n_iterations"]},
        checks=(_problems,),
        shown=(lambda content: {"model": {"scale": content.metadata["robust"]["scale"]}},),
        told=(lambda metadata: {"scale": metadata["robust"]["scale"]},),
    )
)
