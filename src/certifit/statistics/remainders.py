"""What is left of a column that is nearly a combination of others: a basis of exactly the same span.

x_j = c_j + sum_k C_jk x_k + e_j for every column j that a factor set aside. Whatever C is, the columns kept and the
remainders e span what all columns span (with the intercept where c is not 0), so only the condition depends on C.
The remainders are evaluated row by row with some 106 bits, over the entries as given, and scaled to size 1: a task
on `source.through(remainders.basis())` is about all weights of the original columns, and well conditioned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import fdtrc

from certifit.data.columns import Array, Codes, Columns, Csr, Dense, Segment, coarseness
from certifit.data.source import Block, Source
from certifit.runtime import core, n_threads
from certifit.statistics import double_double as dd
from certifit.statistics.factor import Factor, System, twofold_factor
from certifit.statistics.gram import Gram, Scaling, counted, gram, scaled_weights

UNIT = 2.0**-53
TWOFOLD_ERROR = 2.0**-102  # error per term of a sum of products, relative to the sum of their sizes
PLAIN_BITS = 24  # coefficients with so few bits are tried first: relations made by hand have them
SMALLEST_TERM = 2.0**-40  # smallest coefficient of a relation between columns of size 1
FEW_NUMBERS = 600  # most entries of rows that are combined in exact arithmetic
LARGEST_DENOMINATOR = 1000
MOST_ROUNDINGS = 8  # of a relation, in every row: |sum_k c_k x_ik| over u sum_k |c_k x_ik| (Oettli, Prager 1964)
RARE = 1e-6  # the chance below which remainders that explain the target are not rounding
MOST_LEVELS = 3  # remainders, remainders of remainders, and of those
PIECE = 4096  # rows whose magnitudes are found at a time


@dataclass(frozen=True)
class Remainders:
    """e = x~_j - sum_k times_jk x~_k - constant_j for columns x~ = x scale: one line per column that is set aside.

    largest: the largest |e| over rows of positive weight; roundings: the largest |e_i|, in units of the rounding of
    the entries it is made of, infinite where these are whole numbers, which have none; coarseness: how much coarser
    than float64 the type of a column rounds; norm: root of sum_i w_i e_i^2, w times weight_scale; size: that over the
    column's own.
    """

    n_columns: int
    columns: Array
    scale: Array
    weight_scale: float
    times: dd.Pair
    constants: dd.Pair
    largest: Array
    roundings: Array
    norm: Array
    size: Array
    coarseness: Array
    n_rows: int = 0

    @property
    def is_exact(self) -> Array:
        """Columns that are the combination of the others to the last bit."""
        return np.asarray(self.largest == 0)

    @property
    def is_rounding(self) -> Array:
        """Columns that differ from a combination of the others by no more than the rounding of their entries."""
        return np.asarray(~self.is_exact & (self.roundings <= MOST_ROUNDINGS))

    @property
    def is_apart(self) -> Array:
        """Columns that are near the span of the others, but no combination of them."""
        return ~self.is_exact & ~self.is_rounding

    @property
    def coarsest(self) -> Array:
        """How much coarser than float64 the coarsest column of every line rounds."""
        is_term = np.abs(self.times[0]) >= SMALLEST_TERM * self.coarseness
        is_term[np.arange(len(self.columns)), self.columns] = True
        return np.asarray(np.where(is_term, self.coarseness, 1.0).max(axis=1))

    @property
    def smallest(self) -> Array:
        """The smallest coefficient of every line that is not taken for rounding, between columns of size 1."""
        return SMALLEST_TERM * self.coarsest

    def basis(self) -> LiteralBasis:
        """The columns kept, and the remainders that are not 0, as a map of rows."""
        return LiteralBasis(self)

    def share_of(self, weights: Array) -> float:
        """At most the root of sum_i w_i q_i^2, for q what weights of the scaled columns make of the remainders."""
        return float(self.norm @ np.abs(weights[self.columns]))

    def trusted(self, squares: float, gain: float, freedom: int) -> Remainders:
        """These, or none of them as rounding where the target follows them: what rounding gains has F(live, freedom).

        squares: of the residuals without the remainders; gain: by how much less they are with them. Roundings of real
        columns are functions of these, and explain a percent of what a fit leaves however many rows there are: the
        target follows what explains more than it leaves.
        """
        live, left = int((~self.is_exact).sum()), max(squares - gain, np.finfo(float).tiny)
        if freedom < 1 or gain < left or fdtrc(live, freedom, gain / left * freedom / live) >= RARE:
            return self
        return replace(self, roundings=np.full(len(self.columns), np.inf))

    def rounding_as_exact(self) -> Remainders:
        """The same with remainders that are rounding taken for 0."""
        return replace(self, largest=np.where(self.is_rounding, 0.0, self.largest))

    def refined(self, source: Source, factor: Factor, scaling: Scaling, fit_intercept: bool) -> Remainders | None:
        """Remainders of the remainders that are combinations of others, after a factor of the basis's columns.

        None where a column of the rows themselves turns out to be one: that should not be.
        """
        first = int(fit_intercept) + self.n_columns - len(self.columns)  # place of the first remainder in the factor
        if factor.dependent.min(initial=first) < first:
            return None
        relations, constants = _unshifted(factor, scaling, fit_intercept)
        full = np.zeros((2, len(factor.dependent), len(scaling.scale)))
        full[:, :, factor.kept[int(fit_intercept) :] - int(fit_intercept)] = relations
        for i, place in enumerate(factor.dependent - int(fit_intercept)):
            full[:, i, place:] = 0.0  # a relation has no column after its own
        dependent = factor.dependent - first
        smaller = _measured(source, self._less(dependent, (full[0], full[1]), constants, scaling.scale))
        places = np.flatnonzero(~self.is_exact)[dependent]
        flags = np.isin(np.arange(len(self.columns)), places)
        plain = _measured(source, _plain(source, smaller._where(flags), fit_intercept))
        flags[places] = plain.is_exact
        return smaller._with(flags, plain._where(plain.is_exact))

    def _less(self, dependent: Array, relations: dd.Pair, constants: dd.Pair, scale: Array) -> Remainders:
        """These with remainder own_i (of those not 0) less sum_k relations_ik (column k of the basis) + constant_i."""
        live, kept, unit = np.flatnonzero(~self.is_exact), self.kept, self.basis().unit
        times, constant = _copied(self.times), _copied(self.constants)
        for i, place in enumerate(dependent):
            # e_j unit_j scale_j = sum_k r_k scale_k x_k + sum_l r_l scale_l unit_l e_l + c
            j, by = live[place], unit[place] * scale[len(kept) + place]
            line, c = _line(times, j), dd.add(_line(constant, j), _times(_line(constants, i), 1 / by))
            change = np.zeros((2, self.n_columns))
            share = scale[: len(kept)] / self.scale[kept] / by
            change[:, kept] = _times((relations[0][i, : len(kept)], relations[1][i, : len(kept)]), share)
            line = dd.add(line, (change[0], change[1]))
            for at, other in enumerate(live):
                r = _times(_line(_line(relations, i), len(kept) + at), scale[len(kept) + at] * unit[at] / by)
                if r[0] == 0:
                    continue
                # e_l = x_l - times_l x - constant_l
                column = np.zeros((2, self.n_columns))
                column[:, self.columns[other]] = r
                line = dd.add(
                    dd.add(line, (column[0], column[1])), dd.multiply(_times(r, -1.0), _line(self.times, other))
                )
                c = dd.add(c, dd.multiply(_times(r, -1.0), _line(self.constants, other)))
            times[0][j], times[1][j] = line
            constant[0][j], constant[1][j] = c
        return replace(self, times=times, constants=constant)

    def _told(self, exact: dict[int, Relation]) -> Remainders:
        """These remainders with some of their relations as they are in rationals."""
        times, constants = _copied(self.times), _copied(self.constants)
        for i, (multiples, constant) in exact.items():
            times[0][i], times[1][i] = _pair_of(multiples)
            (constants[0][i],), (constants[1][i],) = _pair_of([constant])
        return replace(self, times=times, constants=constants)

    def _with(self, flags: Array, other: Remainders) -> Remainders:
        """These remainders with the flagged ones from another."""

        def mixed(old: Array, new: Array) -> Array:
            out = old.copy()
            out[flags] = new
            return out

        def pairs(old: dd.Pair, new: dd.Pair) -> dd.Pair:
            return mixed(old[0], new[0]), mixed(old[1], new[1])

        return replace(
            self,
            times=pairs(self.times, other.times),
            constants=pairs(self.constants, other.constants),
            largest=mixed(self.largest, other.largest),
            roundings=mixed(self.roundings, other.roundings),
            norm=mixed(self.norm, other.norm),
            size=mixed(self.size, other.size),
        )

    @property
    def kept(self) -> Array:
        """The columns that were not set aside."""
        return np.setdiff1d(np.arange(self.n_columns), self.columns)

    def _where(self, flags: Array) -> Remainders:
        def taken(pair: dd.Pair) -> dd.Pair:
            return pair[0][flags], pair[1][flags]

        return replace(
            self,
            columns=self.columns[flags],
            times=taken(self.times),
            constants=taken(self.constants),
            **{name: getattr(self, name)[flags] for name in ("largest", "roundings", "norm", "size")},
        )


@dataclass(frozen=True)
class Converted:
    """A state in the columns of a literal basis.

    |score - score of the converted state| <= errors @ |columns of the basis| + intercept_error, in every row.
    """

    coef: Array
    intercept: float
    errors: Array
    intercept_error: float

    def off_by(self, largest: Array) -> float:
        """The most that a score is off. largest: entries of the columns of the basis, in size."""
        return float(self.errors @ largest) + self.intercept_error


@dataclass(frozen=True)
class SomeColumns:
    """A map of rows: some of the columns as they are, ascending."""

    columns: Array

    def apply(self, X: Any) -> Any:
        """The mapped rows."""
        return Columns(_segments(X, self.columns), X.shape[0])

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """Names of the mapped columns."""
        return [str(input_features[k]) for k in self.columns]


@dataclass(frozen=True)
class LiteralBasis:
    """A map of rows: the columns kept as they are, then every remainder times a power of two, near 1 in size.

    is_beside: all columns as they are in place of those kept.
    """

    remainders: Remainders
    is_beside: bool = False

    @property
    def live(self) -> Array:
        """Places of the remainders that are not 0."""
        return np.flatnonzero(~self.remainders.is_exact)

    @property
    def unit(self) -> Array:
        """Powers of two that bring the live remainders near 1, after the scale of their column."""
        return np.ldexp(1.0, -np.frexp(self.remainders.largest[self.live])[1])

    @property
    def _columns(self) -> Array:
        return np.arange(self.remainders.n_columns) if self.is_beside else self.remainders.kept

    def apply(self, X: Any) -> Any:
        """The mapped rows."""
        scaled = np.empty((X.shape[0], len(self.live)))
        for at, (i, unit) in enumerate(zip(self.live, self.unit, strict=True)):
            np.multiply(_remainder(X, self.remainders, int(i)), unit, out=scaled[:, at])
        return Columns([*_segments(X, self._columns), Dense(scaled)], X.shape[0])

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """Names of the mapped columns."""
        names = [str(name) for name in input_features]
        live = self.remainders.columns[self.live]
        return [names[k] for k in self._columns] + [f"remainder of {names[j]}" for j in live]

    @property
    def relative_error(self) -> Array:
        """What a live remainder's entry is off by, relative to the largest of its column: its own rounding apart."""
        r = self.remainders
        terms = np.count_nonzero(r.times[0], axis=1) + 2
        sizes = np.abs(r.times[0]).sum(axis=1) * 2 + 2 + np.abs(r.constants[0])
        return np.asarray((TWOFOLD_ERROR * terms * sizes)[self.live] * self.unit)

    def converted(self, coef: Array, intercept: float, y_scale: float = 1.0) -> Converted:
        """The state of equal scores: x'w + b = sum_k x_k (w_k + sum_j C_jk w_j) + sum_j e_j w_j + (b + c'w).

        y_scale: a power of two that all of it is multiplied by.
        """
        r = self.remainders
        total: dd.Pair = (scaled_weights(coef, r.scale, y_scale), np.zeros(r.n_columns))  # of the scaled columns
        constant: dd.Pair = (np.asarray(intercept * y_scale), np.zeros(()))
        size, size_c = np.abs(total[0]), abs(intercept * y_scale)
        for i in np.argsort(-r.columns):  # a relation has no column after its own
            weight = _line(total, int(r.columns[i]))
            total = dd.add(total, dd.multiply(_line(r.times, i), weight))
            constant = dd.add(constant, dd.multiply(_line(r.constants, i), weight))
            size = size + np.abs(r.times[0][i] * weight[0])
            size_c += abs(r.constants[0][i] * weight[0])
        of_remainders = total[0][r.columns[self.live]] / self.unit
        errors = (UNIT * np.abs(total[0]) + TWOFOLD_ERROR * size)[r.kept] * r.scale[r.kept]
        off = float(self.relative_error @ np.abs(of_remainders))
        return Converted(
            np.concatenate([total[0][r.kept] * r.scale[r.kept], of_remainders]),
            float(constant[0]),
            np.concatenate([errors, 3 * UNIT * np.abs(of_remainders)]),
            UNIT * abs(float(constant[0])) + TWOFOLD_ERROR * size_c + off,
        )


@dataclass(frozen=True)
class LiteralColumns:
    """Rows in a literal basis whose columns are independent, their Gram statistic in twofold sums, and its factor."""

    remainders: Remainders
    basis: LiteralBasis
    source: Source
    gram: Gram
    factor: Factor


def literal_columns(source: Source, remainders: Remainders, fit_intercept: bool) -> LiteralColumns | None:
    """The rows in the basis of these remainders, or in one with remainders of remainders; None where none will do."""
    for _ in range(MOST_LEVELS):
        basis = remainders.basis()
        rows = source.through(basis)
        sums = gram(rows, fit_intercept, twofold=True)
        factor = column_factor(sums, fit_intercept)
        if not len(factor.dependent):
            return LiteralColumns(remainders, basis, rows, sums, factor)
        more = remainders.refined(source, factor, sums.scaling, fit_intercept)
        if more is None:
            return None
        remainders = more
    return None


def column_remainders(source: Source, fit_intercept: bool) -> Remainders | None:
    """Remainders of the redundant columns of a source, from sums of its own; None where there is none."""
    sums = gram(source, fit_intercept, twofold=True)
    return related_factor(source, column_system(sums, fit_intercept), sums.scaling, fit_intercept)[1]


def related_factor(
    source: Source, system: System, scaling: Scaling, fit_intercept: bool
) -> tuple[Factor, Remainders | None]:
    """A factor that sets one column of every relation aside, and what is left of these; None where there is none.

    Relations are sought where remainders are small beside the terms of a combination, and are those whose remainders
    are rounding of them in every row: powers of a column have large terms too. The columns of others are kept.
    """
    offset, found = int(fit_intercept), None
    factor, aside = screened(source, system, fit_intercept)
    if len(factor.dependent):
        found = remainders(source, factor, scaling, fit_intercept)
        if not np.isin(found.columns[found.is_apart] + offset, aside).all():  # their multiples of others may be large
            dependent = twofold_factor(system, order=system.by_size(offset)).dependent.tolist()
            by_size, places = screened(source, system, fit_intercept, dependent)
            other = remainders(source, by_size, scaling, fit_intercept)
            if (~other.is_apart).sum() > (~found.is_apart).sum():
                factor, found, aside = by_size, other, places
        apart = found.columns[found.is_apart] + offset
        if np.isin(aside, apart).any():
            factor = twofold_factor(system, aside=[k for k in aside if k not in apart])
            found = remainders(source, factor, scaling, fit_intercept) if len(factor.dependent) else None
    return factor, found


def screened(
    source: Source, system: System, fit_intercept: bool, first: Sequence[int] = ()
) -> tuple[Factor, list[int]]:
    """A factor, and the columns that it sets aside whatever is left of them, the first ones known.

    Of the others little is left beside the terms of a relation.
    """
    coarse, aside = np.append(np.ones(int(fit_intercept)), coarseness_of(source)), list(first)
    factor = twofold_factor(system, aside=aside)
    while more := factor.nearly_related(system.norms, coarse):
        aside += more
        factor = twofold_factor(system, aside=aside)
    return factor, aside


def some_columns(source: Source, columns: Array) -> Source:
    """Rows of some columns, ascending, whose types are known as before."""
    taken = source.through(SomeColumns(columns))
    taken.coarseness = coarseness_of(source)[columns]
    return taken


def coarseness_of(source: Source) -> Array:
    """How much coarser the type of every column rounds than float64 does."""
    known = coarseness(source.unkept().first_block().X) if source.coarseness is None else source.coarseness
    return np.ones(source.n_features) if known is None else known


def column_factor(sums: Gram, fit_intercept: bool, near: float = 1.0) -> Factor:
    """Factor of the columns (1, x scale - shift), or of x scale. near: times as far are columns set aside."""
    return twofold_factor(column_system(sums, fit_intercept, near))


def column_system(sums: Gram, fit_intercept: bool, near: float = 1.0) -> System:
    """Products of the columns (1, x scale - shift), or of x scale."""
    d = sums.n_columns
    order = np.concatenate([[d], np.arange(d)])[1 - int(fit_intercept) :]
    norms = np.concatenate([[np.sqrt(sums.sum_weight)], sums.norms])[1 - int(fit_intercept) :]
    places = np.ix_(order, order)
    low = None if sums.low is None else sums.low[places]
    return System.of(sums.sums[places], low, np.zeros(len(order)), near * norms)


def remainders(source: Source, factor: Factor, scaling: Scaling, fit_intercept: bool) -> Remainders:
    """What is left of the columns that a factor set aside: one pass where the relations are plain, else two or three.

    The factor is one of (1, x scale - shift) with an intercept, which it keeps, and of x scale without.
    """
    offset = int(fit_intercept)
    columns = factor.dependent - offset
    kept = np.setdiff1d(np.arange(len(scaling.scale)), columns)
    relations, constants = _unshifted(factor, scaling, fit_intercept)
    m, d = len(columns), len(scaling.scale)
    times = (np.zeros((m, d)), np.zeros((m, d)))
    times[0][:, kept], times[1][:, kept] = relations
    none = np.zeros(m)
    units = (scaling.scale, scaling.weight_scale)
    refined = Remainders(d, columns, *units, times, constants, none, none, none, none, coarseness_of(source))
    best = _measured(source, _plain(source, refined, fit_intercept))
    for other in (_float64(refined), refined):
        apart = best.is_apart
        if apart.any():
            best = best._with(apart, _measured(source, other._where(apart)))
    return _without_combinations(source, best, refined, fit_intercept)


def _without_combinations(source: Source, best: Remainders, refined: Remainders, fit_intercept: bool) -> Remainders:
    """Remainders that are 0 in exact arithmetic, though no float64 coefficients show it, set to 0.

    Columns beyond the number of rows; combinations with small fractions; and, for few numbers, any combination.
    """
    if best.is_exact.all():
        return best
    zero, exact = best.is_exact, {}
    if best.n_rows * best.n_columns <= FEW_NUMBERS:
        exact = _exact_relations(source, best, fit_intercept)
    elif best.n_rows <= len(best.kept) + int(fit_intercept):
        zero[:] = True
    else:
        for i in np.flatnonzero(~zero):
            relation = _small_fractions(source, refined, int(i), fit_intercept)
            exact |= {} if relation is None else {int(i): relation}
    zero[list(exact)] = True
    new = zero & ~best.is_exact
    told = refined._told(exact)
    return replace(best._with(new, told._where(new)), largest=np.where(zero, 0.0, best.largest))


Relation = tuple[list[Fraction], Fraction]  # multiples of all scaled columns, and a constant


def _exact_relations(source: Source, best: Remainders, fit_intercept: bool) -> dict[int, Relation]:
    """The columns set aside that are combinations of those kept, in rationals."""
    rows = counted(source.gather()).X
    X = rows.toarray() if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
    basis = np.column_stack([np.ones((len(X), int(fit_intercept))), X[:, best.kept]])
    spanned, offset = exact_combinations(basis, X[:, best.columns]), int(fit_intercept)
    scale, relations = [Fraction(unit) for unit in best.scale.tolist()], {}
    for i in np.flatnonzero(spanned & ~best.is_exact).tolist():
        j = int(best.columns[i])
        multiples = exact_multiples(basis, X[:, j])
        times = [Fraction(0)] * best.n_columns
        for k, multiple in zip(best.kept.tolist(), multiples[offset:], strict=True):
            times[k] = multiple * scale[j] / scale[k]
        relations[i] = times, multiples[0] * scale[j] if offset else Fraction(0)
    return relations


def _small_fractions(source: Source, refined: Remainders, i: int, fit_intercept: bool) -> Relation | None:
    """A relation of small fractions that holds in every row, exactly."""
    fractions = _fractions(refined, i)
    constant = None if fractions is None else _vanishes(source, refined, i, *fractions, fit_intercept)
    if fractions is None or constant is None:
        return None
    times, q = fractions
    return [Fraction(number) / q for number in times.tolist()], constant / q


def _fractions(refined: Remainders, i: int) -> tuple[Array, int] | None:
    """Coefficients as q C for a small whole number q that makes all of them short; None where there is none."""
    q = 1
    for hi in refined.times[0][i]:
        if abs(hi) >= SMALLEST_TERM:
            part = float(np.frexp(hi)[0])
            near = Fraction(part).limit_denominator(LARGEST_DENOMINATOR)
            if abs(float(near) - part) > SMALLEST_TERM:
                return None
            q = math.lcm(q, near.denominator)
    if q & (q - 1) == 0 or q > LARGEST_DENOMINATOR**2:
        return None
    return _few_bits(q * refined.times[0][i]), q


def _vanishes(
    source: Source, refined: Remainders, i: int, times: Array, q: int, fit_intercept: bool
) -> Fraction | None:
    """What q x_j - sum_k times_k x_k is in every row, to twofold precision; None where it varies.

    Without an intercept it must be 0.
    """
    weights = times.copy()
    weights[refined.columns[i]] = -float(q)
    constant, rest = 0.0, 0.0
    of = partial(_combined, scale=refined.scale, weights=weights)
    if fit_intercept:
        first = counted(source.first_block()).part(0, 1).X
        constant = float(of(first, constant=0.0)[0])
        rest = float(of(first, constant=constant)[0])
    largest: _Largest = source.reduce(partial(_largest_of, of=partial(of, constant=constant), rest=rest))
    return Fraction(constant) + Fraction(rest) if largest.value == 0 else None


@dataclass(frozen=True)
class _Largest:
    value: float

    def __add__(self, other: _Largest) -> _Largest:
        return _Largest(max(self.value, other.value))


def _largest_of(stretch: Block, of: Any, rest: float) -> _Largest:
    stretch = counted(stretch)
    return _Largest(float(np.abs(of(stretch.X) - rest).max(initial=0.0)))


def _combined(X: Any, scale: Array, weights: Array, constant: float) -> Array:
    """-sum_k weights_k x_k scale_k - constant of every row, evaluated in twofold precision."""
    rows = Block(X, None, None).rows
    return np.asarray(core.residual_rows(rows, np.zeros(X.shape[0]), scale, 1.0, weights, constant, n_threads()))


def exact_combinations(basis: Array, columns: Array) -> Array:
    """Which columns are combinations of a basis, exactly: Bareiss's elimination in integers.

    Columns of the basis that are combinations of those before them take no part.
    """
    every = [_integers(column) for column in np.column_stack([basis, columns]).T]
    last = 1
    for j in range(basis.shape[1]):
        basis_column = every[j]
        row = next((i for i, entry in enumerate(basis_column) if entry), None)
        if row is None:
            continue
        pivot = basis_column[row]
        for k in range(j + 1, len(every)):
            factor, other = every[k][row], every[k]
            every[k] = [
                (entry * pivot - factor * mine) // last for entry, mine in zip(other, basis_column, strict=True)
            ]
        last = pivot
    return np.array([not any(column) for column in every[basis.shape[1] :]])


def exact_multiples(basis: Array, column: Array) -> list[Fraction]:
    """The multiples of the columns of a basis that give a column in its span: as many rows as it takes, eliminated."""
    found: list[tuple[int, list[Fraction]]] = []
    for entries in np.column_stack([basis, column]).tolist():
        row = [Fraction(entry) for entry in entries]
        for place, other in found:
            if share := row[place] / other[place]:
                row = [mine - share * theirs for mine, theirs in zip(row, other, strict=True)]
        pivot = next((k for k in range(basis.shape[1]) if row[k]), None)
        if pivot is not None:
            found.append((pivot, row))
        if len(found) == basis.shape[1]:
            break
    multiples = [Fraction(0)] * basis.shape[1]
    for place, row in reversed(found):
        known = sum((a * b for a, b in zip(row, multiples, strict=False)), Fraction(0))
        multiples[place] = (row[-1] - known) / row[place]
    return multiples


def _integers(column: Array) -> list[int]:
    """A column times a power of two, as integers."""
    ratios = [float(entry).as_integer_ratio() for entry in column]
    denominator = max((below for _, below in ratios), default=1)
    return [above * (denominator // below) for above, below in ratios]


def _unshifted(factor: Factor, scaling: Scaling, fit_intercept: bool) -> tuple[dd.Pair, dd.Pair]:
    """Relations for x scale instead of x scale - shift, and their constants, as pairs."""
    low = np.zeros_like(factor.relations) if factor.relations_low is None else factor.relations_low
    if not fit_intercept:
        m = len(factor.relations)
        return (factor.relations.copy(), low.copy()), (np.zeros(m), np.zeros(m))
    hi, lo = factor.relations[:, 1:].copy(), low[:, 1:].copy()
    constant: dd.Pair = (factor.relations[:, 0].copy(), low[:, 0].copy())
    constant = dd.add(constant, (scaling.shift[factor.dependent - 1], np.zeros(len(hi))))
    for k, column in enumerate(factor.kept[1:] - 1):
        if scaling.shift[column]:
            share = (np.full(len(hi), -scaling.shift[column]), np.zeros(len(hi)))
            constant = dd.add(constant, dd.multiply((hi[:, k], lo[:, k]), share))
    return (hi, lo), constant


def _plain(source: Source, refined: Remainders, fit_intercept: bool) -> Remainders:
    """The same with coefficients of few bits, and the constant that the first row tells."""
    times = _few_bits(refined.times[0], refined.smallest[:, None])
    pair, nothing = (times, np.zeros_like(times)), np.zeros(len(times))
    plain = replace(refined, times=pair, constants=(nothing, nothing.copy()))
    if not fit_intercept:
        return plain
    row = counted(source.first_block()).part(0, 1).X
    constants = np.array([_remainder(row, plain, i)[0] for i in range(len(times))])
    constants[~(np.abs(constants) >= refined.smallest)] = 0.0  # rounding of the row's entries, or not finite
    return replace(plain, constants=(constants, nothing.copy()))


def _few_bits(numbers: Array, smallest: Array | float = SMALLEST_TERM) -> Array:
    grid = np.maximum(np.ldexp(1.0, np.frexp(numbers)[1] - PLAIN_BITS), smallest)
    return np.asarray(np.round(numbers / grid) * grid)


def _float64(refined: Remainders) -> Remainders:
    """The same with coefficients in float64, those of terms that are nothing left out."""

    def rounded(numbers: Array, smallest: Array) -> dd.Pair:
        return np.where(np.abs(numbers) < smallest, 0.0, numbers), np.zeros_like(numbers)

    times, least = rounded(refined.times[0], refined.smallest[:, None]), refined.smallest
    return replace(refined, times=times, constants=rounded(refined.constants[0], least))


@dataclass(frozen=True)
class _Sizes:
    """Largest remainders, largest in units of rounding, weighted squares of remainders and of their columns.

    is_whole: the remainders of columns that are all whole numbers with no rounding.
    """

    largest: Array
    roundings: Array
    squares: Array
    total: Array
    is_whole: Array
    n_rows: int

    def __add__(self, other: _Sizes) -> _Sizes:
        largest = np.maximum(self.largest, other.largest), np.maximum(self.roundings, other.roundings)
        sums = self.squares + other.squares, self.total + other.total, self.is_whole & other.is_whole
        return _Sizes(*largest, *sums, self.n_rows + other.n_rows)


def _measured(source: Source, remainders: Remainders) -> Remainders:
    """The remainders with their sizes: one pass."""
    sizes: _Sizes = source.reduce(partial(_sizes, remainders=remainders))
    with np.errstate(divide="ignore", invalid="ignore"):
        norm, size = np.sqrt(sizes.squares), np.nan_to_num(np.sqrt(sizes.squares / sizes.total))
    # With small fractions as coefficients what is left of whole numbers is no less than one of these, or nothing.
    is_left = sizes.is_whole & (sizes.largest * LARGEST_DENOMINATOR >= remainders.scale[remainders.columns])
    roundings = np.where(is_left, np.inf, sizes.roundings)
    sized = replace(remainders, largest=sizes.largest, roundings=roundings, norm=norm, size=size)
    return replace(sized, n_rows=sizes.n_rows)


def _sizes(stretch: Block, remainders: Remainders) -> _Sizes:
    stretch = counted(stretch)
    m = len(remainders.columns)
    sizes = _Sizes(np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.ones(m, dtype=bool), stretch.n_rows)
    weight = 1.0 if stretch.weight is None else stretch.weight * remainders.weight_scale
    for i, j in enumerate(remainders.columns):
        e = _remainder(stretch.X, remainders, i)
        if not e.any():
            sizes.total[i] = 1.0
            continue
        sizes.largest[i] = np.abs(e).max()
        sizes.squares[i] = np.sum(weight * e**2)
        sizes.total[i] = np.sum(weight * (_column(stretch.X, int(j)) * remainders.scale[j]) ** 2)
        terms = np.append(np.flatnonzero(np.abs(remainders.times[0][i]) >= SMALLEST_TERM), j)
        sizes.is_whole[i] = all(_is_whole(_column(stretch.X, k), remainders.coarseness[k]) for k in terms.tolist())
        for begin in range(0, len(e), PIECE):
            piece = np.abs(e[begin : begin + PIECE])
            if piece.any():
                size = _magnitude(stretch.part(begin, begin + PIECE).X, remainders, i)
                sizes.roundings[i] = max(sizes.roundings[i], _ratio(piece, UNIT * size))
    return sizes


def _is_whole(column: Array, coarseness: float) -> bool:
    """Whether a column is of whole numbers that its type holds exactly."""
    return bool((np.abs(column) * UNIT * coarseness < 1).all() and (column == np.rint(column)).all())


def _ratio(numbers: Array, units: Array) -> float:
    live = numbers > 0
    return float(np.max(numbers[live] / np.maximum(units[live], np.finfo(float).tiny), initial=0.0))


def _remainder(X: Any, r: Remainders, i: int) -> Array:
    """Remainder i of every row, evaluated in twofold precision and rounded once; scaled, without its unit."""
    j, scale = int(r.columns[i]), r.scale
    hi, lo = r.times[0][i], r.times[1][i]
    places = np.flatnonzero(hi)
    if not sp.issparse(X) and not isinstance(X, Columns) and 4 * len(places) < len(hi):
        X, hi, lo, scale, y = [X[:, k : k + 1] for k in places], hi[places], lo[places], scale[places], _column(X, j)
        rows: list[tuple[Any, ...]] = [("rows", len(y)), *(("dense", column) for column in X)]
    else:
        rows, y = Block(X, None, None).rows, _column(X, j)
    is_pair = bool(lo.any() or r.constants[1][i])
    if is_pair:
        ones = ("dense", np.ones((len(y), 1)))
        rows = [*rows, *rows[len(rows) - sum(part[0] != "rows" for part in rows) :], ones]
        weights, scale = np.concatenate([hi, lo, [r.constants[1][i]]]), np.concatenate([scale, scale, [1.0]])
    else:
        weights = np.ascontiguousarray(hi)
    out: Array = core.residual_rows(
        rows, y, np.ascontiguousarray(scale), r.scale[j], weights, float(r.constants[0][i]), n_threads()
    )
    return out


def _magnitude(X: Any, r: Remainders, i: int) -> Array:
    """u (|x_j| + sum_k |times_k x_k| + |constant|), scaled: what the rounding of a row's entries is relative to."""
    j, coarse = int(r.columns[i]), float(r.coarsest[i])
    times = np.abs(r.times[0][i]) * r.scale * coarse
    out = (np.abs(_column(X, j) * r.scale[j]) + abs(r.constants[0][i])) * coarse
    places = np.flatnonzero(times)
    if sp.issparse(X):
        return np.asarray(out + abs(X.astype(np.float64)) @ times)
    rows = X.toarray() if isinstance(X, Columns) else X
    return np.asarray(out + np.abs(rows[:, places].astype(np.float64, copy=False)) @ times[places])


def _column(X: Any, j: int) -> Array:
    """Column j as contiguous float64."""
    if sp.issparse(X):
        return np.ascontiguousarray(X[:, [j]].toarray()[:, 0], dtype=np.float64)
    if not isinstance(X, Columns):
        return np.ascontiguousarray(X[:, j], dtype=np.float64)
    for part in X.segments:
        if j < part.n_columns:
            (segment,) = _taken(part, np.array([j]))
            return np.ascontiguousarray(segment.dense(X.shape[0])[:, 0])
        j -= part.n_columns
    raise IndexError(j)


def _segments(X: Any, columns: Array) -> list[Segment]:
    """Some columns of rows of any storage, ascending."""
    if not isinstance(X, Columns):
        return _taken(Csr(X) if sp.issparse(X) else Dense(X), columns)
    out: list[Segment] = []
    first = 0
    for part in X.segments:
        places = columns[(columns >= first) & (columns < first + part.n_columns)] - first
        out += _taken(part, places)
        first += part.n_columns
    return out


def _taken(part: Segment, columns: Array) -> list[Segment]:
    """Some columns of a segment, ascending."""
    if len(columns) == part.n_columns:
        return [part]
    if len(columns) == 0:
        return []
    if isinstance(part, Csr):
        return [Csr(sp.csr_array(part.rows[:, columns], dtype=np.float64))]
    if isinstance(part, Codes):
        place = np.full(part.n_columns + 1, -1, dtype=np.int32)  # the last is "no column", -1
        place[columns] = np.arange(len(columns), dtype=np.int32)
        null = int(place[part.null_column])
        return [replace(part, columns=place[part.columns], n_columns=len(columns), null_column=null)]
    if isinstance(part, Dense):
        return [Dense(part.values[:, begin:end]) for begin, end in _stretches(columns)]
    raise TypeError(f"columns of {type(part).__name__} cannot be taken")


def _stretches(columns: Array) -> Sequence[tuple[int, int]]:
    """Consecutive columns as (begin, end)."""
    cuts = np.flatnonzero(np.diff(columns) != 1) + 1
    return [(int(part[0]), int(part[-1]) + 1) for part in np.split(columns, cuts)]


def _copied(pair: dd.Pair) -> dd.Pair:
    return pair[0].copy(), pair[1].copy()


def _pair_of(numbers: list[Fraction]) -> dd.Pair:
    high = [float(number) for number in numbers]
    low = [float(number - Fraction(near)) for number, near in zip(numbers, high, strict=True)]
    return np.array(high), np.array(low)


def _line(pair: dd.Pair, i: Any) -> dd.Pair:
    return pair[0][i], pair[1][i]


def _times(pair: dd.Pair, power: Any) -> dd.Pair:
    """A pair times powers of two."""
    return pair[0] * power, pair[1] * power
