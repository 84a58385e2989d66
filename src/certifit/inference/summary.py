"""The table of a fit: text for a terminal, HTML for a page, a dict and a data frame for programs."""

from __future__ import annotations

import html
import math
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    import pandas

    from certifit.inference.least_squares import Inference

NAME_WIDTH = 30  # columns a coefficient's name may take in print
TITLE = "Least Squares Regression Results"
SCALARS = (
    *("n_obs", "df_resid", "df_model", "r_squared", "adjusted_r_squared", "f_statistic", "f_pvalue"),
    *("log_likelihood", "aic", "bic", "sigma", "sigma2"),
)


@dataclass(frozen=True)
class Dropped:
    """A redundant column that a table names and the fit leaves out."""

    place: int  # among all rows of the table
    name: str
    relation: str  # "x3 = x1 + 2 x2"


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """The table of a fit: prints as text, shows as HTML in a notebook, converts to a dict or a frame."""

    inference: Inference
    model: str
    target: str
    level: float
    notes: tuple[str, ...]
    dropped: tuple[Dropped, ...] = ()
    undetermined: tuple[int, ...] = ()  # places of rows marked as not determined, those of `dropped` among them
    infinite: Mapping[int, float] = field(default_factory=dict)  # +inf or -inf by place, of some of `undetermined`

    title: ClassVar[str] = TITLE
    scalars: ClassVar[tuple[str, ...]] = SCALARS

    def __str__(self) -> str:
        heads = ["", *self._heads()]
        cells = [[cut(plain_text(name), NAME_WIDTH), *texts] for name, texts in self._rows()]
        widths = [max(11, *(_width(row[j]) + 2 for row in [heads, *cells])) for j in range(len(heads))]
        width = max(78, sum(widths))
        widths[0] += width - sum(widths)
        rule, half = "=" * width, width // 2 - 1
        lines = [self.title.center(width).rstrip(), rule]
        for a, b, c, d in self._header():
            lines.append(f"{_spread(a, b, half)}  {_spread(c, d, width - half - 2)}")
        lines.append(rule)
        for row in [heads, *cells]:
            lines.append((_spread(row[0], "", widths[0]) + "".join(map(str.rjust, row[1:], widths[1:]))).rstrip())
            lines += ["-" * width] if row is heads else []
        lines += [rule, "", "Notes:"]
        for i, note in enumerate(self.notes, 1):
            lines += textwrap.wrap(f"[{i}] {plain_text(note)}", width, subsequent_indent="    ")
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text; None where a value is undefined, float infinities at an exact fit."""

        def defined(keys: Sequence[str], values: Sequence[float]) -> dict[str, float | None]:
            return {k: None if math.isnan(v) else float(v) for k, v in zip(keys, values, strict=True)}

        fit = self.inference
        keys = ("estimate", "standard_error", fit.law, "p", "lower", "upper")
        relations: dict[int, dict[str, Any]] = {c.place: {"dropped": c.relation} for c in self.dropped}
        relations |= {place: {"determined": False} for place in self.undetermined}
        rows = enumerate(zip(self._names(), self._values(), strict=True))
        return {
            "model": self.model,
            "target": self.target,
            "level": self.level,
            "covariance": fit.covariance_type,
            "weights": fit.weights,
            **defined(self.scalars, [getattr(fit, name) for name in self.scalars]),
            "coefficients": [{"name": name, **defined(keys, row), **relations.get(i, {})} for i, (name, row) in rows],
            "notes": list(self.notes),
        }

    def to_frame(self) -> pandas.DataFrame:
        """The coefficients as a pandas frame: a row per coefficient, full names in the index; nan where dropped or not
        determined.
        """
        return data_frame(self._values(), self._names(), self._heads())

    def to_html(self) -> str:
        """Two tables and the notes as a piece of HTML; all text is escaped."""
        top = "".join(_html_row(line) for line in self._header())
        head = _html_row(["", *self._heads()], "th")
        body = "".join(_html_row([plain_text(name), *texts]) for name, texts in self._rows())
        notes = "".join(f"<li>{html.escape(plain_text(note))}</li>" for note in self.notes)
        return (
            f"<table><caption>{self.title}</caption><tbody>{top}</tbody></table>"
            f"<table><thead>{head}</thead><tbody>{body}</tbody></table><p>Notes:</p><ol>{notes}</ol>"
        )

    _repr_html_ = to_html  # what a notebook shows

    def _values(self) -> np.ndarray:
        """Estimate, standard error, t or z, p and interval of every coefficient, a row each; nan where none is."""
        fit, ends = self.inference, self.inference.confidence_interval(self.level)
        estimated = np.column_stack([fit.estimate, fit.standard_errors, fit.t_values, fit.p_values, ends])
        values = np.full((len(estimated) + len(self.dropped), estimated.shape[1]), np.nan)
        values[self._kept()] = estimated
        values[list(self.undetermined)] = np.nan
        values[list(self.infinite), 0] = list(self.infinite.values())
        return values

    def _kept(self) -> np.ndarray:
        """Which rows of the table have a coefficient."""
        kept = np.ones(len(self.inference.names) + len(self.dropped), dtype=bool)
        kept[[column.place for column in self.dropped]] = False
        return kept

    def _names(self) -> list[str]:
        """All rows of the table."""
        names = list(self.inference.names)
        for column in self.dropped:  # in the order of their places
            names.insert(column.place, column.name)
        return names

    def _heads(self) -> list[str]:
        tail = (1 - self.level) / 2
        law = self.inference.law
        return ["coef", "std err", law, f"P>|{law}|", f"[{tail:.6g}", f"{1 - tail:.6g}]"]

    def _rows(self) -> Iterator[tuple[str, list[str]]]:
        rows = zip(self._names(), self._values(), self._kept(), strict=True)
        for place, (name, (estimate, error, t, p, *ends), is_kept) in enumerate(rows):
            if place in self.undetermined:
                yield name, [f"{self.infinite[place]:+}" if place in self.infinite else "not determined", *[""] * 5]
                continue
            texts = [_number(estimate, 4), _number(error, 3), _number(t, 3), format_number("%.3f", p)]
            yield name, texts + [_number(end, 3) for end in ends] if is_kept else ["dropped", *[""] * 5]

    def _header(self) -> list[tuple[str, str, str, str]]:
        """Lines of label, value, label, value."""
        fit = self.inference
        kind = "" if fit.has_intercept else " (uncentered)"
        r2, adjusted = format_number("%.3f", fit.r_squared), format_number("%.3f", fit.adjusted_r_squared)
        f, f_pvalue = format_number("%#.4g", fit.f_statistic), format_number("%#.3g", fit.f_pvalue)
        likelihood, aic, bic = (
            format_number("%#.5g", fit.log_likelihood),
            format_number("%#.4g", fit.aic),
            format_number("%#.4g", fit.bic),
        )
        return [
            ("Dep. Variable:", cut(plain_text(self.target), 22), f"R-squared{kind}:", r2),
            ("Model:", cut(plain_text(self.model), 22), f"Adj. R-squared{kind}:", adjusted),
            ("No. Observations:", count_text(fit.n_obs), "F-statistic:", f),
            ("Df Residuals:", count_text(fit.df_resid), "Prob (F-statistic):", f_pvalue),
            ("Df Model:", count_text(fit.df_model), "Log-Likelihood:", likelihood),
            ("Covariance Type:", fit.covariance_type, "AIC:", aic),
            ("Sigma:", f"{fit.sigma:#.4g}", "BIC:", bic),
        ]


def left_out(dropped: Sequence[Dropped], is_marked: bool = False) -> list[str]:
    """A sentence on columns that repeat others, if there are any: marked as not determined, or left out."""
    if not dropped:
        return []
    shown = "; ".join(plain_text(column.relation) for column in dropped[:10])
    more = f"; and {len(dropped) - 10} more" if len(dropped) > 10 else ""
    if is_marked:
        return [
            f"Not determined by the data: the coefficients of columns in a relation, {shown}{more}. All others are the "
            "same whichever column of each relation is left out; redundant='drop' leaves the last one out."
        ]
    return [f"Left out as redundant: {shown}{more}. The other coefficients are those of a fit without them."]


def data_frame(values: Any, index: Sequence[Any], columns: Sequence[str]) -> pandas.DataFrame:
    """A pandas frame, or the name of the extra that brings pandas."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("to_frame needs pandas: pip install certifit[pandas]") from error
    return pandas.DataFrame(values, index=index, columns=list(columns))


def format_number(pattern: str, value: float) -> str:
    """In a format; "undefined" for nan."""
    return "undefined" if math.isnan(value) else pattern % value


def _number(value: float, digits: int) -> str:
    fixed = value == 0 or 1e-4 <= abs(value) < 1e4
    return format_number(f"%.{digits}{'f' if fixed else 'g'}", value)


def count_text(value: float) -> str:
    """A whole number without a point."""
    return f"{value:.0f}" if value % 1 == 0 else f"{value:.6g}"


def plain_text(text: str) -> str:
    """Terminal codes, line breaks and invisible characters as visible escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _width(text: str) -> int:
    """Columns on a terminal: East Asian wide characters take 2, combining marks 0."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def cut(text: str, limit: int) -> str:
    """At most `limit` columns: the middle gives way to "..."."""
    if _width(text) <= limit:
        return text
    head, tail = text[:limit], text[-limit:]
    while _width(head) > (limit - 3 + 1) // 2:
        head = head[:-1]
    while _width(tail) > (limit - 3) // 2:
        tail = tail[1:]
    return f"{head}...{tail}"


def _spread(label: str, value: str, width: int) -> str:
    return label + " " * (width - _width(label) - _width(value)) + value


def _html_row(cells: Sequence[str], tag: str = "td") -> str:
    numbers = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells[1:])
    return f'<tr><th scope="row">{html.escape(cells[0])}</th>{numbers}</tr>'
