"""python -m tests.ordinary [--cases N] [--seed S] [--estimators "a;b"] [--out FILE.jsonl] [--case K].

Fits ordinary problems, compares what each fit says of itself with the truth, and prints a table. Resumes.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import certifit as cf
from tests.hunt.__main__ import NAMES
from tests.ordinary.estimators import ESTIMATORS

VERDICTS = ("right", "false", "needless", "refused", "unknown", "error", "crash", "slow")
SHOWN = 6  # cases of a kind that are named


def main() -> None:
    """Run a hunt, or replay one case of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.ordinary", description=__doc__)
    parser.add_argument("--cases", type=int, help="per estimator; default: 1,000 of linear models, 300 of the others")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--estimators", help=f"separated by semicolons, of: {'; '.join(ESTIMATORS)}")
    parser.add_argument("--out", type=Path, help="default: build/ordinary/seed-S.jsonl; a run goes on from it")
    parser.add_argument("--case", type=int, help="replay this case of the estimators: the problem, and what came out")
    given = parser.parse_args()
    names = list(ESTIMATORS) if given.estimators is None else [name.strip() for name in given.estimators.split(";")]
    if unknown := set(names) - set(ESTIMATORS):
        parser.error(f"no such estimator: {', '.join(sorted(unknown))}. Use {'; '.join(ESTIMATORS)}.")
    with cf.threads(1):
        if given.case is not None:
            print("\n".join(replay(name, given.seed, given.case) for name in names))
            return
        out = given.out or Path("build/ordinary") / f"seed-{given.seed}.jsonl"
        print(
            table_of(run([(n, k) for n in names for k in range(given.cases or ESTIMATORS[n].n_cases)], given.seed, out))
        )


def run(wanted: list[tuple[str, int]], seed: int, out: Path) -> list[dict[str, Any]]:
    """The records of these cases; those that the file has are not made again, and a line that was cut off is."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = [line for line in out.read_text().splitlines() if line.endswith("}")] if out.exists() else []
    records = {(record["estimator"], record["case"]): record for record in map(json.loads, lines)}
    with out.open("w") as file:
        file.writelines(line + "\n" for line in lines)
        for name, case in sorted(set(wanted) - set(records), key=lambda pair: pair[::-1]):
            try:
                record = ESTIMATORS[name].run(seed, case)
            except Exception as error:  # of the hunt itself
                fault = f"the hunt itself: {type(error).__name__}: {error}"[:300]
                record = {"estimator": name, "case": case, "verdict": "unknown", "seconds": 0.0, "fault": fault}
            records[name, case] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
    return [records[pair] for pair in wanted]


def table_of(records: list[dict[str, Any]]) -> str:
    """Counts per estimator, then cases to replay."""
    lines = [
        f"{'estimator':<30} {'fits':>5}" + "".join(f"{v:>9}" for v in VERDICTS) + f"{'needless %':>12}{'CPU s':>9}"
    ]
    kinds: dict[tuple[str, str, str], list[int]] = {}
    for name in dict.fromkeys(record["estimator"] for record in records):
        rows = [record for record in records if record["estimator"] == name]
        counts = Counter(record["verdict"] for record in rows)
        cells = "".join(f"{counts[v]:>9,}" for v in VERDICTS) + f"{100 * counts['needless'] / len(rows):>12.1f}"
        lines.append(f"{name:<30} {len(rows):>5,}{cells}{sum(record['seconds'] for record in rows):>9.1f}")
        for record in rows:
            kinds.setdefault((record["verdict"], name, record.get("reason", "")), []).append(record["case"])
    for (verdict, name, reason), cases in sorted(kinds.items()):
        if verdict != "right":
            shown = ", ".join(map(str, cases[:SHOWN])) + (", ..." if len(cases) > SHOWN else "")
            lines.append(f"{verdict}, {name}{', ' + reason if reason else ''}: {len(cases)}: --case {shown}")
    return "\n".join(lines)


def replay(name: str, seed: int, case: int) -> str:
    """The problem as Python, the model, and the record."""
    row = ESTIMATORS[name]
    problem = row.problem(seed, case)
    given = ", ".join(n for n in NAMES if n == "X" or getattr(problem, n.split("=")[-1]) is not None)
    fit = f"model = cf.{row.model.__name__}(**parameters).fit({given}); print(model.certificate_)"
    record = [f"# {key}: {value!r}" for key, value in row.run(seed, case).items()]
    return "\n".join(["import numpy as np, certifit as cf", problem.literals(), fit, *record])


if __name__ == "__main__":
    main()
