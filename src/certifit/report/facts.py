"""What every part of the report is made from: a fitted model, its data, and what two passes over them told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from certifit.data.source import Source
from certifit.report import passes
from certifit.report.kinds import Kind, kind_of
from certifit.report.passes import Shapes, Survey

Table = dict[str, Any]


@dataclass(frozen=True)
class Fit:
    """A fit as the sections see it. validation, selection: tables of `report.validation`, or None."""

    model: Any
    source: Source
    files: Mapping[str, Any]
    level: float
    validation: Table | None
    selection: Table | None
    kind: Kind
    seen: Survey
    shapes: Shapes

    @property
    def has_intercept(self) -> bool:
        """Whether the model has one."""
        return bool(getattr(self.model, "fit_intercept", True))

    @property
    def inference(self) -> Any:
        """Standard errors and the like; None where there are none."""
        return getattr(self.model, "inference_", None)

    @staticmethod
    def of(
        model: Any,
        source: Source,
        files: Mapping[str, Any],
        level: float,
        validation: Table | None,
        selection: Table | None,
    ) -> "Fit":
        """Two passes over the data."""
        sd, mean = float(model.data_["target_sd"]), float(model.data_["target_mean"])
        scale = sd if sd > 0 else max(abs(mean), 1.0)
        seen = passes.survey(model, source, scale, mean if getattr(model, "fit_intercept", True) else 0.0)
        shapes = passes.shapes(model, source, seen)
        return Fit(model, source, files, level, validation, selection, kind_of(model), seen, shapes)
