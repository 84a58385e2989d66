"""The sections of a report, in the order of reading. A new one is a row here and a file in templates/sections.

A section is shown where its key of the context holds something: a model that has no path has no section on it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from certifit.report.classes import class_facts, validation_table
from certifit.report.coefficients import coefficient_facts, path_facts
from certifit.report.deciding import deciding_facts
from certifit.report.facts import Fit
from certifit.report.influence import influence_facts, outlier_facts
from certifit.report.model import certificate_facts, data_facts, history_facts, usage
from certifit.report.quality import deviance_facts, quality_facts
from certifit.report.text import Table


@dataclass(frozen=True)
class Section:
    """name: id on the page and file of the template; key: of the context, made by `build` or `tell`."""

    name: str
    key: str
    title: str | Callable[[Table], str]
    short: str | Callable[[Table], str]
    build: Callable[[Fit], Table | None] | None = None  # from the fit
    tell: Callable[[Table], Table] | None = None  # from the facts of all sections

    def shown(self, context: Table) -> Table:
        """What the page needs to know of it."""
        said = {"title": self.title, "short": self.short}
        words = {key: one if isinstance(one, str) else one(context) for key, one in said.items()}
        return {"name": self.name, "key": self.key} | words


def _proof(context: Table) -> str:
    return f"{context['certificate']['goal']['question']} The proof"


def _converged(context: Table) -> str:
    return str(context["certificate"]["goal"]["question"])


def _coefficients(context: Table) -> str:
    return "Coefficients and p-values" if context["coefficients"]["has_inference"] else "Coefficients"


SECTIONS = (
    Section("validation", "validation", "How well does it predict new rows?", "New rows", validation_table),
    Section("classes", "classes", "Which classes does it confuse?", "Classes", class_facts),
    Section("probabilities", "classes", "How good are its probabilities?", "Probabilities"),
    Section("deciding", "deciding", "What decides?", "What decides", deciding_facts),
    Section("data", "data", "Data", "Data", data_facts),
    Section("warnings", "notices", "Warnings", "Warnings"),
    Section("coefficients", "coefficients", _coefficients, "Coefficients", coefficient_facts),
    Section("path", "path", "What does the penalty do?", "Penalty", path_facts),
    Section("fit", "quality", "How good is the fit?", "Fit", quality_facts),
    Section("fit", "deviance", "How good is the fit?", "Fit", deviance_facts),
    Section("residuals", "quality", "Residuals", "Residuals"),
    Section("influence", "influence", "Which rows does it hang on?", "Influence", influence_facts),
    Section("outliers", "outliers", "Which rows are held back?", "Outliers", outlier_facts),
    Section("proof", "certificate", _proof, _converged, certificate_facts),
    Section("steps", "history", "How did it get there?", "Steps", history_facts),
    Section("use", "usage", "Use the model", "Use the model", tell=usage),
    Section("words", "certificate", "Definitions", "Definitions"),
)


def shown(context: Table) -> list[Table]:
    """The sections that this fit has."""
    return [section.shown(context) for section in SECTIONS if context[section.key]]
