"""On which side of a hyperplane rows can lie, in exact rationals.

Gordan's theorem: some u has a_i'u > 0 for all rows a_i, or there are multipliers m >= 0 with sum m_i = 1 and
sum m_i a_i = 0, never both. Stiemke's: some u has a_i'u >= 0 for all rows and > 0 for one, or there are multipliers
m > 0 with sum m_i a_i = 0. Multipliers are looked for by the simplex method (phase 1, Bland's rule: no cycles).
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import fmpq


def lies_in_a_halfspace(rows: Sequence[Sequence[fmpq]]) -> bool:
    """Whether all rows lie strictly on one side of some hyperplane through 0."""
    columns = [[*(_scaled(row)), fmpq(1)] for row in rows]
    return not _has_multipliers(columns, [fmpq(0)] * len(rows[0]) + [fmpq(1)])


def recedes(rows: Sequence[Sequence[fmpq]], held: Sequence[Sequence[fmpq]] = ()) -> bool:
    """Whether some hyperplane through 0 has a row strictly on one side and none on the other, and all that are held."""
    if not rows:
        return False
    columns = [_scaled(row) for row in rows]
    still = [_scaled(row) for row in held]  # their multipliers may have either sign
    right = [-sum((column[k] for column in columns), fmpq(0)) for k in range(len(columns[0]))]  # m = 1 + what is found
    return not _has_multipliers([*columns, *still, *([-entry for entry in row] for row in still)], right)


def _has_multipliers(columns: Sequence[Sequence[fmpq]], right: Sequence[fmpq]) -> bool:
    """Whether some m >= 0 has sum_j m_j column_j = right."""
    n, size = len(columns), len(right)
    # One equation per entry, the right-hand side last; artificial unknowns n, n + 1, ... are the first basis.
    table = [[column[k] for column in columns] + [right[k]] for k in range(size)]
    table = [[-entry for entry in row] if row[n] < 0 else row for row in table]
    basis = list(range(n, n + size))
    gains = [sum((row[j] for row in table), fmpq(0)) for j in range(n + 1)]
    while True:
        entering = next((j for j in range(n) if gains[j] > 0), None)
        if entering is None:
            return not gains[n] > 0
        shares = [(row[n] / row[entering], basis[k], k) for k, row in enumerate(table) if row[entering] > 0]
        leaving = min(shares)[2]
        pivot = table[leaving][entering]
        table[leaving] = [entry / pivot for entry in table[leaving]]
        for k, row in enumerate(table):
            if k != leaving and row[entering] != 0:
                table[k] = _less(row, table[leaving], row[entering])
        gains = _less(gains, table[leaving], gains[entering])
        basis[leaving] = entering


def _scaled(row: Sequence[fmpq]) -> list[fmpq]:
    """The row over its largest entry: its side is the same, and the numbers are short."""
    largest = max(abs(entry) for entry in row)
    return [entry / largest for entry in row] if largest else list(row)


def _less(row: list[fmpq], unit: list[fmpq], times: fmpq) -> list[fmpq]:
    return [a - times * b for a, b in zip(row, unit, strict=True)]
