"""Rows in parts that the workers of Dask hold: they are dealt out, merged and cut where they are.

The process that fits sees what f gives of a part, never the rows: histograms, sums, numbers of rows. A task has a group
of consecutive parts: a fit goes over the rows some twenty times per tree, and a task of Dask's costs what the work on a
part does.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.parts import Arrays, Carry, Part, PartPlan, Parts, Result
from certifit.runtime import threads

_GROUPS_OF_THREAD = 2
_PARTS_OF_GROUP = 16  # at most: what f gives of them is sent at once
_GROUPS_AT_ONCE = 64 // _PARTS_OF_GROUP


class Aligned:
    """f for workers: unpickled there, its arrays begin where numbers may begin.

    Small arrays that Dask sends by pickle's protocol 5 lie anywhere among the bytes received, and the core reads whole
    numbers. Protocol 4 copies what is not aligned.
    """

    def __init__(self, f: Callable[..., Result]) -> None:
        self.f = f

    def __call__(self, *arguments: Any) -> Any:
        """f, in the process that made it."""
        return self.f(*arguments)

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        import cloudpickle  # Dask's own: functions of users have no name to be found by

        return cloudpickle.loads, (cloudpickle.dumps(self.f, protocol=4),)


def shared_task(f: Callable[..., Any]) -> Any:
    """A task that gives f: one copy for all tasks."""
    from dask.delayed import delayed

    return delayed(Aligned(f), pure=False, traverse=False)


class DaskParts(Parts):
    """Groups of parts as tasks whose results are kept by the workers."""

    def __init__(self, groups: list[Any], n_rows: int) -> None:
        self.groups, self.n_rows = groups, n_rows

    @classmethod
    def built(cls, stretches: list[Any], plan: PartPlan) -> DaskParts:
        """stretches: tasks that give the arrays of a stretch, None of one without rows."""
        from dask.base import compute, persist
        from dask.delayed import delayed

        shared = delayed(plan, pure=False, traverse=False)
        dealt = [delayed(_dealt)(shared, rows) for rows in stretches]
        ranges = [delayed(_merged)(shared, *[one[number] for one in dealt]) for number in range(plan.n_ranges)]
        ranges = list(persist(*ranges))
        ends = [0, *accumulate(compute(*[delayed(_n_rows)(rows) for rows in ranges]))]
        group_rows = plan.part_rows * _parts_of_group(-(-ends[-1] // plan.part_rows))
        groups = []
        for begin in range(0, ends[-1], group_rows):
            end = min(begin + group_rows, ends[-1])
            first, last = bisect_right(ends, begin) - 1, bisect_left(ends, end)
            cuts = [(max(begin - start, 0), end - start) for start in ends[first:last]]
            groups.append(delayed(_cut)(begin, plan.part_rows, cuts, *ranges[first:last]))
        return cls(list(persist(*groups)), ends[-1])

    def map(self, f: Callable[[Part], Result], reads: Sequence[str]) -> Iterator[Result]:
        """f of every part, in their order, computed by the workers."""
        from dask.base import compute
        from dask.delayed import delayed

        shared = shared_task(f)
        for begin in range(0, len(self.groups), _GROUPS_AT_ONCE):
            at_once = self.groups[begin : begin + _GROUPS_AT_ONCE]
            for results in compute(*[delayed(_each)(shared, group) for group in at_once]):
                yield from results

    def total(self, f: Callable[[Part], Array], reads: Sequence[str]) -> Array:
        """The sum over parts of what f gives, added up by the workers, two by two."""
        from dask.base import compute
        from dask.delayed import delayed

        shared = shared_task(f)
        total: Array = compute(_sum_task([delayed(_total)(shared, group) for group in self.groups]))[0]
        return total

    def updated_total(self, f: Callable[[Part], tuple[Arrays, Array]], reads: Sequence[str]) -> Array:
        """The same of the second results of f; the first are arrays that the workers keep."""
        from dask.base import compute, persist
        from dask.delayed import delayed

        shared = shared_task(f)
        pairs = [delayed(_updated_total, nout=2)(shared, group) for group in self.groups]
        *groups, summed = persist(*[pair[0] for pair in pairs], _sum_task([pair[1] for pair in pairs]))
        total: Array = compute(summed)[0]
        self.groups = groups
        return total

    def update(self, f: Callable[[Part], tuple[Arrays, Result]], reads: Sequence[str]) -> Iterator[Result]:
        """The second result of f of every part; the first are arrays that the workers keep."""
        from dask.base import compute, persist
        from dask.delayed import delayed

        shared = shared_task(f)
        pairs = [delayed(_updated, nout=2)(shared, group) for group in self.groups]
        kept = persist(*[pair[0] for pair in pairs], *[pair[1] for pair in pairs])
        for results in compute(*kept[len(pairs) :]):
            yield from results
        self.groups = list(kept[: len(pairs)])

    def fold(self, f: Callable[[Part, Carry], Carry], carry: Carry, reads: Sequence[str]) -> Carry:
        """f of every part and what f gave of the part before, handed from worker to worker."""
        from dask.base import compute
        from dask.delayed import delayed

        shared = shared_task(f)
        at: Any = delayed(carry, pure=False, traverse=False)
        for group in self.groups:
            at = delayed(_folded)(shared, group, at)
        last: Carry = compute(at)[0]
        return last


def _parts_of_group(n_parts: int) -> int:
    """Parts of a task: every thread of the workers has some tasks."""
    return max(1, min(_PARTS_OF_GROUP, -(-n_parts // (_GROUPS_OF_THREAD * _n_threads()))))


def _n_threads() -> int:
    """Threads of the workers of Dask's cluster, or of this machine where there is none."""
    try:
        from distributed import get_client

        return sum(get_client().nthreads().values()) or 1
    except (ImportError, ValueError):
        return os.cpu_count() or 1


def _sum_task(sums: list[Any]) -> Any:
    """A task that adds up the results of others, two by two."""
    from dask.delayed import delayed

    while len(sums) > 1:
        sums = [delayed(_added)(*sums[k : k + 2]) for k in range(0, len(sums), 2)]
    return sums[0]


def _dealt(plan: PartPlan, rows: Arrays | None) -> list[Arrays | None]:
    return [None] * plan.n_ranges if rows is None else list(plan.dealt(rows))


def _merged(plan: PartPlan, *pieces: Arrays | None) -> Arrays | None:
    filled = [piece for piece in pieces if piece is not None and len(piece[plan.key])]
    if not filled:
        return None
    with threads(1):
        return plan.merged({name: np.concatenate([piece[name] for piece in filled]) for name in filled[0]})


def _n_rows(rows: Arrays | None) -> int:
    return 0 if rows is None else len(next(iter(rows.values())))


def _cut(begin: int, part_rows: int, cuts: list[tuple[int, int]], *ranges: Arrays | None) -> list[Part]:
    """The parts of a group, whose rows are those of some ranges."""
    filled = [(rows, cut) for rows, cut in zip(ranges, cuts, strict=True) if rows is not None]
    joined = {name: np.concatenate([rows[name][a:b] for rows, (a, b) in filled]) for name in filled[0][0]}
    starts = range(0, _n_rows(joined), part_rows)
    return [Part(begin + k, {name: array[k : k + part_rows] for name, array in joined.items()}) for k in starts]


def _each(f: Callable[[Part], Any], group: list[Part]) -> list[Any]:
    with threads(1):  # the workers are what runs in parallel
        return [f(part) for part in group]


def _total(f: Callable[[Part], Array], group: list[Part]) -> Array:
    with threads(1):
        return reduce(add, map(f, group))


def _added(first: Array, *others: Array) -> Array:
    return sum(others, start=first)


def _updated(f: Callable[[Part], tuple[Arrays, Any]], group: list[Part]) -> tuple[list[Part], list[Any]]:
    with threads(1):
        pairs = [f(part) for part in group]
    parts = [Part(part.first, part.arrays | arrays) for part, (arrays, _) in zip(group, pairs, strict=True)]
    return parts, [result for _, result in pairs]


def _updated_total(f: Callable[[Part], tuple[Arrays, Array]], group: list[Part]) -> tuple[list[Part], Array]:
    parts = []

    def kept(part: Part) -> Array:
        arrays, result = f(part)
        parts.append(Part(part.first, part.arrays | arrays))
        return result

    return parts, _total(kept, group)


def _folded(f: Callable[[Part, Any], Any], group: list[Part], carry: Any) -> Any:
    with threads(1):
        for part in group:
            carry = f(part, carry)
    return carry
