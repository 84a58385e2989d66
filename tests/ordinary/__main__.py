"""python -m tests.ordinary [--cases N] [--seed S] [--estimators a,b] [--out FILE.jsonl] [--case K].

Fits ordinary problems, compares what each says of itself with the truth, and prints a table per estimator. Resumes.
"""

from __future__ import annotations

import argparse
import json
import time
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
            for name in names:
                replay(name, given.seed, given.case)
            return
        out = given.out or Path("build/ordinary") / f"seed-{given.seed}.jsonl"
        wanted = [(name, case) for name in names for case in range(given.cases or ESTIMATORS[name].n_cases)]
        print(table_of(run(wanted, given.seed, out)))


def run(wanted: list[tuple[str, int]], seed: int, out: Path) -> list[dict[str, Any]]:
    """The records of these cases; those that the file has are not made again."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = [line for line in out.read_text().splitlines() if line.endswith("}")] if out.exists() else []
    records = {(record["estimator"], record["case"]): record for record in map(json.loads, lines)}
    began = time.monotonic()
    with out.open("w") as file:
        file.writelines(line + "\n" for line in lines)
        for name, case in wanted:
            if (name, case) in records:
                continue
            try:
                record = ESTIMATORS[name].run(seed, case)
            except Exception as error:  # of the hunt itself
                record = {"estimator": name, "case": case, "verdict": "unknown", "seconds": 0.0}
                record["fault"] = f"the hunt itself: {type(error).__name__}: {error}"[:300]
            records[name, case] = record
            file.write(json.dumps(record) + "\n")
            file.flush()
    print(f"{len(wanted):,} cases, {len(lines):,} of them read; {time.monotonic() - began:,.0f} s. Records: {out}")
    return [records[pair] for pair in wanted]


def table_of(records: list[dict[str, Any]]) -> str:
    """Counts per estimator, then cases to replay."""
    lines = ["estimator                      fits  " + "".join(f"{v:>9}" for v in VERDICTS) + "  needless %    CPU s"]
    for name in dict.fromkeys(record["estimator"] for record in records):
        rows = [record for record in records if record["estimator"] == name]
        counts = Counter(record["verdict"] for record in rows)
        share = 100 * counts["needless"] / len(rows)
        seconds = sum(record["seconds"] for record in rows)
        cells = "".join(f"{counts[v]:>9,}" for v in VERDICTS)
        lines.append(f"{name:<30} {len(rows):>5,} {cells} {share:>10.1f} {seconds:>9.1f}")
    kinds: dict[tuple[str, ...], list[int]] = {}
    for record in records:
        if record["verdict"] != "right":
            kinds.setdefault((record["verdict"], record["estimator"], record.get("reason", "")), []).append(
                record["case"]
            )
    for (verdict, name, reason), cases in sorted(kinds.items()):
        shown = ", ".join(map(str, cases[:SHOWN])) + (", ..." if len(cases) > SHOWN else "")
        lines.append(f"{verdict}, {name}{', ' + reason if reason else ''}: {len(cases)}: --case {shown}")
    return "\n".join(lines)


def replay(name: str, seed: int, case: int) -> None:
    """Print the problem as Python, the model, and the record."""
    row = ESTIMATORS[name]
    problem = row.problem(seed, case)
    print("import numpy as np, certifit as cf")
    print(problem.literals())
    given = [word for word in NAMES if word == "X" or getattr(problem, word.split("=")[-1]) is not None]
    print(f"model = cf.{row.model.__name__}(**parameters).fit({', '.join(given)}); print(model.certificate_)")
    print("\n" + "\n".join(f"# {key}: {value}" for key, value in row.run(seed, case).items()))


if __name__ == "__main__":
    main()
