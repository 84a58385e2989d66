"""python -m tests.hunt --cases N --seed S [--estimators a,b] [--jobs 2] [--out FILE.jsonl] [--case K] [--exact]."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.hunt.estimators import ESTIMATORS, estimator_of
from tests.hunt.runner import run

NAMES = ("X", "y", "sample_weight=weights", "offset=offset", "exposure=exposure")


def main() -> None:
    """Run a hunt, or replay one case of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.hunt", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--estimators", help=f"of: {','.join(ESTIMATORS)}")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="default: build/hunt/seed-S.jsonl; a run goes on from it")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds of the processor that a case may take")
    parser.add_argument("--case", type=int, help="replay this case: the problem, and what came out")
    parser.add_argument("--exact", action="store_true", help="compare every fit with verify(exact=True) too")
    given = parser.parse_args()
    if given.case is not None:
        replay(given.seed, given.case, given.estimators, given.exact)
        return
    names = set(ESTIMATORS) if given.estimators is None else set(given.estimators.split(","))
    if names - set(ESTIMATORS):
        parser.error(f"no such estimator: {', '.join(sorted(names - set(ESTIMATORS)))}. Use {', '.join(ESTIMATORS)}.")
    out = given.out or Path("build/hunt") / f"seed-{given.seed}{'-exact' if given.exact else ''}.jsonl"
    run(given.cases, given.seed, names, given.jobs, out, given.timeout, given.exact)


def replay(seed: int, case: int, name: str | None, exact: bool) -> None:
    """Print the problem as NumPy literals, the model, and the record. name: another estimator than the case's own."""
    row = estimator_of(case) if name is None else ESTIMATORS[name]
    _, problem = row.drawn(seed, case)
    print("import numpy as np, scipy.sparse, certifit as cf")
    print(problem.literals())
    fit = ", ".join(name for name in NAMES if name == "X" or getattr(problem, name.split("=")[-1]) is not None)
    print(f"model = cf.{row.model.__name__}(**parameters).fit({fit}); print(model.certificate_)")
    record = row.run(seed, case, exact)
    print()
    for kind, finding in record.findings:
        print(f"{kind.replace('_', ' ')}: {finding}")
    print(f"states {record.states}, held {record.held}, right {record.is_right}, refused {record.is_refused}")
    if exact:
        print(f"the exact proof: {record.exact or 'none for this model'}, {record.exact_seconds:.2f} s")


if __name__ == "__main__":
    main()
