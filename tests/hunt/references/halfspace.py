"""Whether some vector u has a_i'u > 0 for all rows a_i, in exact rationals.

Gordan's theorem: there is one, or there are multipliers m >= 0 with sum m_i = 1 and sum m_i a_i = 0, never both. The
multipliers are looked for by the simplex method (phase 1, Bland's rule: no cycles).
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import fmpq


def lies_in_a_halfspace(rows: Sequence[Sequence[fmpq]]) -> bool:
    """Whether all rows lie strictly on one side of some hyperplane through 0."""
    columns = [[*(_scaled(row)), fmpq(1)] for row in rows]
    n, size = len(columns), len(columns[0])
    # One equation per entry, the right-hand side last; artificial unknowns n, n + 1, ... are the first basis.
    table = [[column[k] for column in columns] + [fmpq(int(k == size - 1))] for k in range(size)]
    basis = list(range(n, n + size))
    gains = [sum((row[j] for row in table), fmpq(0)) for j in range(n + 1)]
    while True:
        entering = next((j for j in range(n) if gains[j] > 0), None)
        if entering is None:
            return bool(gains[n] > 0)
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
