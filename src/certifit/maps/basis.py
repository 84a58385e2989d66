"""Basis functions: polynomials of the features as columns, or any functions of the row, f(x) = b + sum_k w_k phi_k(x).

`Polynomial` has Chebyshev polynomials T_k(u) of each feature scaled to [-1, 1] and their products, or plain powers.
There is no constant column: the intercept b belongs to the model. Without an intercept use form="powers", because T_2,
T_4, ... hold a constant of their own. Row numbers in errors count from the first row of the X that was passed.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations_with_replacement
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit.data.source import RowError
from certifit.data.user_input import unchanged_on_error
from certifit.maps.rows import Array, finite_rows, first_non_finite, input_names, right_length, set_names, validated

Term = tuple[tuple[int, int], ...]  # (feature, power) of each factor, features ascending; () is the constant

MAX_TERMS = 10_000
MAX_PRODUCTS = 200_000
SCALE_BITS = 20


class Polynomial(TransformerMixin, BaseEstimator):
    """All terms of total degree 1 .. degree of the features.

        chebyshev:  T_a(u_1) T_b(u_2) ...,  u_j = (x_j - center_j) / half_width_j,  a + b + ... <= degree
        powers:     x_1^a x_2^b ...

    Both span the same functions (with an intercept). Chebyshev columns stay nearly orthogonal, so a fit of
    degree 10 keeps 14 digits where powers lose all of them; `monomials` reports the fit in powers of x.
    u is in [-1, 1] on the training range. A column that is constant there has u = 0 everywhere.

    Parameters
    ----------
    degree : int >= 1, default 2
        Largest total degree. At most 10,000 terms.
    form : {"chebyshev", "powers"}, default "chebyshev"
        A penalty acts on the weights of the chosen form.

    Attributes
    ----------
    lower_, upper_ : (d,) training range
    center_, half_width_ : (d,) u = (x - center_) / half_width_; half_width_ is inf for a constant column
    exponents_ : (p, d) power of each feature in each term, by total degree
    n_features_in_ : int

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> basis = Polynomial(2).fit(X)
    >>> basis.transform(X)
    array([[-1.,  1.],
           [ 0., -1.],
           [ 1.,  1.]])
    >>> basis.monomials([1.0, 0.5], intercept=0.5)       # 0.5 + u + 0.5 (2 u^2 - 1),  u = x - 1
    {'1': 0.0, 'x0': -1.0, 'x0^2': 1.0}
    """

    def __init__(self, degree: int = 2, *, form: str = "chebyshev") -> None:
        self.degree = degree
        self.form = form

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the range of each column."""
        _check_polynomial(self.degree, self.form)
        with unchanged_on_error(self):
            rows = finite_rows(self, validated(self, X, reset=True))
            names = getattr(self, "feature_names_in_", None)
            return self.fit_range(rows.min(axis=0), rows.max(axis=0), names=names)

    def fit_range(self, lower: ArrayLike, upper: ArrayLike, names: Sequence[str] | None = None) -> Self:
        """Fit from the smallest and largest value of each column, when the rows are not at hand."""
        _check_polynomial(self.degree, self.form)
        low, high = _checked_range(lower, upper)
        terms = _terms(len(low), int(self.degree))
        scale = FORMS[self.form].scale
        pairs = [scale(float(a), float(b)) for a, b in zip(low, high, strict=True)]
        set_names(self, names, len(low))
        self.lower_, self.upper_ = low, high
        self.center_, self.half_width_ = np.array(pairs, dtype=np.float64).T.copy()
        # Parameters set after the fit must not change what was fitted.
        self._terms, self._degree, self._form = terms, int(self.degree), self.form
        return self

    def transform(self, X: Any) -> Array:
        """One row of p columns for each row of X. Rows outside the training range are extrapolated."""
        check_is_fitted(self)
        return self.apply(validated(self, X, reset=False))

    def apply(self, block: Any) -> Array:
        """`transform` for a block of rows whose column names are checked elsewhere."""
        rows = finite_rows(self, block)
        index = {term: i for i, term in enumerate(self._terms)}
        columns = np.empty((len(self._terms), len(rows)))
        with np.errstate(over="ignore", invalid="ignore"):
            values = _recurrence(FORMS[self._form], self._scaled(rows).T, self._degree)
            for i, term in enumerate(self._terms):
                feature, power = term[-1]
                factor = values[power][feature]
                columns[i] = factor * columns[index[term[:-1]]] if len(term) > 1 else factor
        if bad := first_non_finite(columns):
            advice = ". Use a lower degree, rescale the columns, or keep rows nearer the training range."
            raise RowError(f"Term {self.get_feature_names_out()[bad[0]]!r} overflows", bad[1], advice)
        return np.ascontiguousarray(columns.T)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Names of the columns: "T2(x)", "T1(x) T3(z)"; or "x^2", "x z^3"."""
        check_is_fitted(self)
        names, label = input_names(self, input_features), FORMS[self._form].label
        return np.array([_join(term, names, label) for term in self._terms], dtype=object)

    def monomials(
        self, weights: ArrayLike, intercept: float = 0.0, names: Sequence[str] | None = None
    ) -> dict[str, float]:
        """Coefficients of b + sum_k w_k phi_k(x) in powers of x: {"1": ..., "x": ..., "x^2": ...}.

        The expansion cancels, so it is exact rational arithmetic and each coefficient is rounded once.
        """
        check_is_fitted(self)
        values = np.asarray(weights, dtype=np.float64)
        if values.shape != (len(self._terms),) or not np.isfinite([*values, intercept]).all():
            p = len(self._terms)
            raise ValueError(f"monomials needs {p} finite weights and intercept. Got shape {values.shape}.")
        exact = [Fraction(float(value)) for value in values]
        totals: dict[Term, Fraction] = defaultdict(Fraction, {(): Fraction(float(intercept))})
        for weight, expansion in zip(exact, self._expansions(), strict=True):
            for term, coefficient in expansion.items():
                totals[term] += weight * coefficient
        labels = self._monomial_names(names)
        label, count = Counter(labels).most_common(1)[0]
        if count > 1:
            raise ValueError(f"Two terms would be called {label!r}. Give other column names.")
        return {k: _to_float(totals[t], k) for k, t in zip(labels, [(), *self._terms], strict=True)}

    def monomial_matrix(self) -> Array:
        """M (p + 1, p + 1) with monomial coefficients = M (b, w_1 .. w_p), constant first on both sides.

        A covariance C of (b, w) becomes M C M'. Each entry is exact to one rounding.
        """
        check_is_fitted(self)
        labels = self._monomial_names(None)
        index = {term: i for i, term in enumerate([(), *self._terms])}
        matrix = np.eye(1 + len(self._terms))
        for k, expansion in enumerate(self._expansions(), start=1):
            matrix[k, k] = 0.0
            for term, coefficient in expansion.items():
                matrix[index[term], k] = _to_float(coefficient, labels[index[term]])
        return matrix

    @property
    def exponents_(self) -> NDArray[np.int64]:
        """(p, d) power of each feature in each term, made on each call."""
        if not hasattr(self, "_terms"):
            raise AttributeError("Polynomial has no exponents_ before fit.")
        exponents = np.zeros((len(self._terms), self.n_features_in_), dtype=np.int64)
        for i, term in enumerate(self._terms):
            for feature, power in term:
                exponents[i, feature] = power
        return exponents

    def to_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """(JSON-able parameters, arrays) that `from_state` takes."""
        check_is_fitted(self)
        names = [str(name) for name in self.feature_names_in_] if hasattr(self, "feature_names_in_") else None
        parameters = {"degree": self._degree, "form": self._form, "names": names}
        return parameters, {"lower": self.lower_.copy(), "upper": self.upper_.copy()}

    @classmethod
    def from_state(cls, parameters: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """The fitted map that `to_state` wrote."""
        basis = cls(degree=parameters["degree"], form=parameters["form"])
        return basis.fit_range(arrays["lower"], arrays["upper"], names=parameters["names"])

    def _scaled(self, rows: Array) -> Array:
        # A power of two brings the half-width to [1, 2): no difference overflows, and no bit of u is lost.
        exponent = np.where(np.isfinite(self.half_width_), np.frexp(self.half_width_)[1], 1)
        shift = (1 - exponent).astype(np.int32)
        center, half_width = np.ldexp(self.center_, shift), np.ldexp(self.half_width_, shift)
        scaled: Array = (np.ldexp(rows, shift) - center) / half_width
        return scaled

    def _monomial_names(self, names: Sequence[str] | None) -> list[str]:
        inputs = input_names(self, None) if names is None else right_length(names, self.n_features_in_)
        return ["1", *(_join(term, inputs, _power) for term in self._terms)]

    def _expansions(self) -> Iterator[dict[Term, Fraction]]:
        """Each column in powers of x, exactly."""
        products = sum(math.prod(power + 1 for _, power in term) for term in self._terms)
        if products > MAX_PRODUCTS:
            raise ValueError(
                f"Powers of x need {products:,} exact products (limit {MAX_PRODUCTS:,}). Use a lower degree."
            )
        scales = zip(self.center_, self.half_width_, strict=True)
        tables = [_expanded(FORMS[self._form], float(c), float(h), self._degree) for c, h in scales]
        for term in self._terms:
            expansion: dict[Term, Fraction] = {(): Fraction(1)}
            for j, power in term:
                expansion = {
                    (*powers, (j, i)) if i else powers: value * coefficient
                    for powers, value in expansion.items()
                    for i, coefficient in enumerate(tables[j][power])
                    if coefficient
                }
            yield expansion


class _Form(NamedTuple):
    """phi_0 = 1, phi_1 = u, phi_{k+1} = ahead u phi_k - back phi_{k-1}."""

    ahead: int
    back: int
    scale: Callable[[float, float], tuple[float, float]]  # (lower, upper) -> (center, half-width)
    label: Callable[[str, int], str]


def _check_polynomial(degree: object, form: object) -> None:
    if not isinstance(degree, Integral) or isinstance(degree, bool):
        raise TypeError(f"degree must be an integer. Got {degree!r}.")
    if degree < 1:
        raise ValueError(f"degree must be >= 1. Got {degree}.")
    if form not in FORMS:
        raise ValueError(f"form must be 'chebyshev' or 'powers'. Got {form!r}.")


def _terms(n_features: int, degree: int) -> list[Term]:
    n_terms = math.comb(n_features + degree, degree) - 1
    if n_terms > MAX_TERMS:
        count = f"{n_terms:,}" if n_terms < 10**15 else f"about 10^{math.log10(n_terms):.0f}"
        raise ValueError(
            f"Degree {degree} of {n_features} features has {count} terms (limit {MAX_TERMS:,}). "
            "Use a lower degree, or fewer features."
        )
    picks = (combinations_with_replacement(range(n_features), k) for k in range(1, degree + 1))
    return [tuple(Counter(pick).items()) for pick in chain.from_iterable(picks)]


def _checked_range(lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array]:
    low, high = np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)
    if low.ndim != 1 or low.shape != high.shape or not low.size:
        raise ValueError(f"lower and upper must be 1-D of one length. Got {low.shape} and {high.shape}.")
    bad = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high) & (low <= high)))
    if bad.size:
        j = bad[0]
        raise ValueError(f"Column {j} needs finite lower <= upper. Got {low[j]} and {high[j]}.")
    return low, high


def _center_and_half_width(lower: float, upper: float) -> tuple[float, float]:
    # Few bits in both make x - center exact for nearly every x: u then carries one rounding, the division's.
    # A half-width rounded up by 2^-20 leaves T_k(u) as well conditioned as on the exact range.
    if lower == upper:
        return 0.0, math.inf
    low, high = Fraction(lower), Fraction(upper)
    middle, half = (low + high) / 2, (high - low) / 2
    exponent = half.numerator.bit_length() - half.denominator.bit_length()
    step = Fraction(2) ** (exponent - SCALE_BITS)
    center = float(round(middle / step) * step)
    reach = max(high - Fraction(center), Fraction(center) - low)
    return center, float(min(math.ceil(reach / step) * step, Fraction(sys.float_info.max)))


def _power(name: str, k: int) -> str:
    return name if k == 1 else f"{name}^{k}"


FORMS = {
    "chebyshev": _Form(2, 1, _center_and_half_width, lambda name, k: f"T{k}({name})"),
    "powers": _Form(1, 0, lambda lower, upper: (0.0, 1.0), _power),
}


def _recurrence(form: _Form, u: Array, degree: int) -> list[Array]:
    values = [np.ones_like(u), u]
    while len(values) <= degree:
        ahead = form.ahead * u * values[-1]
        values.append(ahead - values[-2] if form.back else ahead)
    return values


def _expanded(form: _Form, center: float, half_width: float, degree: int) -> list[list[Fraction]]:
    """phi_0(u) .. phi_degree(u) as coefficients of 1, x, x^2, ...; u = (x - center) / half_width exactly."""
    slope = Fraction(0) if math.isinf(half_width) else 1 / Fraction(half_width)
    start = -Fraction(center) * slope
    rows = [[Fraction(1)], [start, slope]]
    while len(rows) <= degree:
        last, before = rows[-1], [*rows[-2], Fraction(0), Fraction(0)]
        times_u = zip([*last, Fraction(0)], [Fraction(0), *last], before, strict=True)
        rows.append([form.ahead * (start * a + slope * b) - form.back * c for a, b, c in times_u])
    return rows


def _to_float(value: Fraction, label: str) -> float:
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if math.isinf(result) or (value and not result):
        size = "large" if result else "small"
        raise ValueError(f"The coefficient of {label!r} is too {size} for float64. Rescale the columns.")
    return result


def _join(term: Term, names: Sequence[str], label: Callable[[str, int], str]) -> str:
    return " ".join(label(names[feature], power) for feature, power in term)


ROW_TOLERANCE = 1e-6


class Functions(TransformerMixin, BaseEstimator):
    """Columns that are functions of the row, written by the user.

        phi_k(x) = functions[k](X)[i]   for row i

    Parameters
    ----------
    functions : list of callables
        Each takes X (n, d), float64 and read-only, and returns (n,) or (n, m). The value of a row must
        depend on that row alone, because data come in blocks.
    names : list of str, one per function or one per column, default None
        None takes `__name__`; a lambda is "f" and its position.

    Attributes
    ----------
    widths_ : (len(functions),) columns that each function gives
    n_features_in_ : int

    >>> import numpy as np
    >>> def radius(X):
    ...     return np.hypot(X[:, 0], X[:, 1])
    >>> basis = Functions([radius, lambda X: X**2])
    >>> basis.fit_transform([[3.0, 4.0], [0.0, 1.0]])
    array([[ 5.,  9., 16.],
           [ 1.,  0.,  1.]])
    >>> list(basis.get_feature_names_out())
    ['radius', 'f1[0]', 'f1[1]']
    """

    def __init__(self, functions: Sequence[Callable[[Array], ArrayLike]], names: Sequence[str] | None = None) -> None:
        self.functions = functions
        self.names = names

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how many columns each function gives. A few rows are enough."""
        labels = _function_names(self.functions)
        with unchanged_on_error(self):
            rows = finite_rows(self, validated(self, X, reset=True))
            parts = [_evaluate(f, label, rows) for f, label in zip(self.functions, labels, strict=True)]
            for function, label, part in zip(self.functions, labels, parts, strict=True):
                _refuse_row_mixing(function, label, rows, part)
            self.widths_ = np.array([part.shape[1] for part in parts], dtype=np.int64)
            self._names_out = _names_out(self.names, labels, self.widths_.tolist())
        return self

    def transform(self, X: Any) -> Array:
        """The columns of all functions, side by side."""
        check_is_fitted(self)
        return self.apply(validated(self, X, reset=False))

    def apply(self, block: Any) -> Array:
        """`transform` for a block of rows whose column names are checked elsewhere."""
        rows = finite_rows(self, block)
        parts = []
        labels = _function_names(self.functions)
        for function, label, width in zip(self.functions, labels, self.widths_, strict=True):
            part = _evaluate(function, label, rows)
            if part.shape[1] != width:
                raise ValueError(f"Function {label!r} gave {width} columns in fit and {part.shape[1]} here.")
            parts.append(part)
        return np.hstack(parts)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Names of the columns; a function of m > 1 columns has "name[0]" .. "name[m-1]"."""
        check_is_fitted(self)
        input_names(self, input_features)
        return np.array(self._names_out, dtype=object)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Refused: a model file holds no code."""
        raise ValueError(
            "basis=Functions([...]) holds Python functions, which a model file never stores. "
            "Refit with Polynomial, or keep the code and refit."
        )


def _function_names(functions: Any) -> list[str]:
    if isinstance(functions, str) or not isinstance(functions, Sequence) or not functions:
        raise TypeError(f"functions must be a list of one or more functions. Got {functions!r}.")
    for i, function in enumerate(functions):
        if not callable(function):
            raise TypeError(f"functions[{i}] must be callable. Got {function!r}.")
    names = [getattr(function, "__name__", "<lambda>") for function in functions]
    names = [f"f{i}" if name == "<lambda>" else name for i, name in enumerate(names)]
    return [name if names.count(name) == 1 else f"{name}{i}" for i, name in enumerate(names)]


def _names_out(names: Sequence[str] | None, labels: list[str], widths: list[int]) -> list[str]:
    chosen = labels if names is None else [str(name) for name in names]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"names must differ from each other. Got {chosen}.")
    if len(chosen) == sum(widths) != len(labels):
        widths = [1] * len(chosen)
    if len(chosen) != len(widths):
        raise ValueError(
            f"names must have {len(labels)} entries (one per function) or {sum(widths)} (one per column). "
            f"Got {len(chosen)}."
        )
    parts = zip(chosen, widths, strict=True)
    return [name if m == 1 else f"{name}[{i}]" for name, m in parts for i in range(m)]


def _evaluate(function: Callable[[Array], ArrayLike], label: str, rows: Array) -> Array:
    result = np.asarray(function(rows))
    if result.ndim not in (1, 2) or len(result) != len(rows) or not result.size:
        n_rows = len(rows)
        raise ValueError(f"Function {label!r} must give shape ({n_rows},) or ({n_rows}, m). Got {result.shape}.")
    if result.dtype.kind not in "biuf":
        raise TypeError(f"Function {label!r} must give real numbers. Got dtype {result.dtype}.")
    part: Array = result.reshape(len(rows), -1).astype(np.float64)
    if bad := first_non_finite(part):
        raise RowError(f"Function {label!r} gives {bad[2]}", bad[0], ", where X is finite.")
    return part


def _refuse_row_mixing(function: Callable[[Array], ArrayLike], label: str, rows: Array, part: Array) -> None:
    alone = _evaluate(function, label, rows[:1])
    allowed = ROW_TOLERANCE * np.abs(part).max(axis=0)
    if alone.shape[1] != part.shape[1] or (np.abs(alone[0] - part[0]) > allowed).any():
        raise ValueError(
            f"Function {label!r} gives row 0 other values when it stands alone. "
            "A basis function may look at one row only."
        )
