"""What the package answers on a table: of fits in Python, and of the command line. A dictionary per model or command.

Predictions are compared within `close`, relative to the largest of them: 1e-9 where the fit ends at its rounding floor;
where the proof leaves more open, what that lets predictions move, by the certificate's own bound where it states one,
else the square root of its value, as of a strongly convex objective. What two builds of the core and two sorts of BLAS
kernels do not agree on is not compared closer than they agree.
"""

from __future__ import annotations

import inspect
import json
import math
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from click.testing import CliRunner
from sklearn.base import clone

import certifit as cf
from certifit.cli import main
from tests.golden.models import GROUPS, SCORED
from tests.golden.tables import TABLES, Table

ANSWERS = Path(__file__).parent / "answers"
KEYS = "report_keys"  # the file of the keys of reports, in sets that the files of tables name
FLOOR = 1e-9
NUMBERS = ("predictions", "standard errors", "fold scores", "validation")
MOST = 0.05  # predictions that are known less closely are not kept
Answer = dict[str, Any]


def answers(name: str) -> dict[str, Answer]:
    """Every model and command on the table of this name."""
    table = TABLES[name]()
    found: dict[str, Answer] = {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            place = None if table.place is None else table.place(table.frame(), Path(folder))
        for model_name, model in GROUPS[table.models].items():
            if takes(model, table):
                found[model_name] = of_model(_encoded(model, table), table, place)
                if "error" not in found[model_name]:
                    found[model_name]["fold scores"] = _scores(_encoded(model, table), table, place)
        if takes(SCORED[table.models], table) and "sample_weight" not in table.roles:
            found["cross_validate"] = of_folds(_encoded(SCORED[table.models], table), table, place)
        if table.commands:
            table.frame().to_csv("rows.csv", index=False)
        for options in table.commands:
            found[f"certifit fit {options}".strip()] = of_command(options, table)
    return found


def takes(model: Any, table: Table) -> bool:
    """Whether it has the roles of the rows."""
    return set(table.roles) <= set(inspect.signature(model.fit).parameters)


def _encoded(model: Any, table: Table) -> Any:
    """The model with the table's encoder, wherever it takes one."""
    model = clone(model)
    names = [name for name in model.get_params() if name.split("__")[-1] == "encoder"]
    return model.set_params(**{name: table.encoder for name in names}) if table.encoder is not None else model


def of_model(model: Any, table: Table, place: Any) -> Answer:
    """A fit: verdict, predictions, warnings, and its file."""
    rows = (table.X, table.y) if place is None else (place,)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(*rows, **(table.roles if place is None else {}))
        except Exception as error:
            return {"error": type(error).__name__}
    answer: Answer = {}
    certificate = getattr(model, "certificate_", None)
    if certificate is not None:
        first = certificate.sentences()[0]
        answer["verdict"] = first.split(":")[0] if ":" in first[:60] else " ".join(first.split()[:4])
        answer["holds"] = certificate.holds
        answer["within tol"] = bool(certificate.value <= certificate.tolerance)
        if certificate.rank is not None:
            answer["rank"] = f"{certificate.rank} of {certificate.n_columns}"
        if certificate.dependent:
            answer["redundant"] = len(certificate.dependent)
    answer["warnings"] = _kinds(caught)
    said = _said(model, table)
    answer |= _predictions(said, certificate)
    inference = getattr(model, "inference_", None)
    if inference is not None and "predictions" in answer:
        answer["standard errors"] = _digits(np.ravel(inference.standard_errors)[:6])
    answer["file"] = _of_file(model, rows, table.roles if place is None else {}, said, table)
    return answer


def _kinds(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    return sorted({one.category.__name__ for one in caught})


def _said(model: Any, table: Table) -> Any:
    """What a fitted model says of some rows: numbers where it has them, else labels; None where it says nothing."""
    names = ("predict_proba", "decision_function", "predict", "transform")
    method = next((name for name in names if hasattr(model, name)), None)
    if method is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            said = getattr(model, method)(table.some_rows())
        except Exception as error:
            said = np.array([type(error).__name__])
    return np.asarray(said.toarray() if hasattr(said, "toarray") else said)


def _predictions(said: Any, certificate: Any) -> Answer:
    if said is None:
        return {}
    if said.dtype.kind not in "fiub":
        return {"predictions": [str(label) for label in said.ravel()]}
    numbers = said.reshape(len(said), -1)[:, :3].astype(float)
    scale = np.abs(numbers).max()
    is_optimum = certificate is not None and "objective" in certificate.sentences()[0]
    moved = math.sqrt(certificate.value) if is_optimum else 0.0
    if getattr(certificate, "prediction_change", None) is not None:
        moved = certificate.prediction_change / scale if scale else 0.0
    return {"predictions": _digits(numbers), "close": rung(moved)}


def rung(moved: float) -> float | None:
    """The power of ten within which predictions are compared; None where they are not worth keeping."""
    if not moved <= MOST:
        return None
    return max(FLOOR, float(f"1e{math.ceil(math.log10(moved))}")) if moved > FLOOR else FLOOR


def _digits(numbers: Any) -> list[float]:
    return [float(f"{number:.12g}") for number in np.ravel(numbers)]


def _of_file(model: Any, rows: Any, roles: Mapping[str, Any], said: Any, table: Table) -> str:
    """Whether the saved file says the same, and is proven again."""
    if not hasattr(model, "certificate_"):
        return "no proof"
    model, path = getattr(model, "best_estimator_", model), Path("model.certifit")
    path.unlink(missing_ok=True)
    try:
        cf.save(model, path)
        loaded = cf.load(path)
        again = _said(loaded, table)
        same = "same" if said is None or np.array_equal(again, said, equal_nan=said.dtype.kind == "f") else "other"
        return f"{same}, {'proven' if cf.verify(loaded, *rows, **roles).holds else 'not proven'}"
    except Exception as error:
        return type(error).__name__


def _scores(model: Any, table: Table, place: Any) -> list[float] | str:
    """Two drawn folds of every model: many have a way of their own to them."""
    rows = (table.X, table.y) if place is None else (place,)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _digits(cf.cross_validate(model, *rows, cv=cf.Folds(2, random_state=1), **table.roles).validation)
    except Exception as error:
        return type(error).__name__


def of_folds(model: Any, table: Table, place: Any) -> Answer:
    """The scores of three folds, and of two others."""
    rows = (table.X, table.y) if place is None else (place,)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            scores = [cf.cross_validate(model, *rows, cv=cv, **table.roles) for cv in (3, cf.Folds(2, random_state=1))]
        except Exception as error:
            return {"error": type(error).__name__}
    numbers = np.concatenate([part for one in scores for part in (one.validation, one.train)])
    return {"warnings": _kinds(caught), "route": scores[0].route, "predictions": _digits(numbers), "close": 1e-8}


def of_command(options: str, table: Table) -> Answer:
    """`certifit fit`, then what is done with its model file."""
    out = Path(f"out{len(list(Path.cwd().iterdir()))}")
    roles = {word for word in options.split() if word in table.roles}
    fit = _run("fit", "rows.csv", "-t", "y", "-o", out, *options.split())
    answer: Answer = {"exit": fit.exit_code}
    if not out.exists():
        return answer | {"said": fit.output.split(":")[0].split("\n")[0][:40]}
    answer["files"] = sorted(path.name for path in out.iterdir())
    answer["pictures"] = sorted(path.stem for path in (out / "pictures").iterdir())
    context = json.loads((out / "report.json").read_text())
    of_classes = (context["classes"] or {}).get("metrics")
    answer["validation"] = _digits([*numbers_in([of_classes, context["validation"]])][:50])
    own = {str(word) for word in (*table.frame().columns, *np.unique(table.y)[:50])}
    answer["report"] = sorted(key_paths(context, own))
    weight = ["--weight", "sample_weight"] if "sample_weight" in roles else []
    answer["verify"] = _run("verify", out / "model.certifit", "rows.csv", *weight).exit_code
    answer["inspect"] = _run("inspect", out / "model.certifit").exit_code
    answer["predict"] = _run("predict", out / "model.certifit", "rows.csv", "-o", "p.csv").exit_code
    if Path("p.csv").exists():
        predicted = pd.read_csv("p.csv")
        answer["columns"] = list(predicted.columns)
        some = predicted.iloc[np.linspace(0, len(predicted) - 1, 6).astype(int), 0]
        answer |= _predictions(some.to_numpy(), cf.load(out / "model.certifit").certificate_)
        Path("p.csv").unlink()
    return answer


def _run(*words: Any) -> Any:
    return CliRunner().invoke(main, [str(word) for word in words])


def numbers_in(context: Any) -> Iterator[float]:
    """Every number of a section, those of long lists apart, and none of what took how long."""
    if isinstance(context, dict):
        yield from (number for key in sorted(context) if "seconds" not in key for number in numbers_in(context[key]))
    elif isinstance(context, list):
        yield from (number for one in context[:3] for number in numbers_in(one))
    elif isinstance(context, int | float) and not isinstance(context, bool):
        yield float(context)


def key_paths(context: Any, own: set[str], path: str = "") -> Iterator[str]:
    """The keys of a report down to the third level, a dotted path each; the table's columns and classes are a star."""
    if isinstance(context, list):
        found = {key for one in context for key in key_paths(one, own, path)}
        yield from found
    elif isinstance(context, dict):
        for key, inner in context.items():
            part = "*" if key in own or not key.isidentifier() else key
            name = f"{path}.{part}" if path else part
            yield name
            if name.count(".") < 2 and name != "pictures":
                yield from key_paths(inner, own, name)


# Files of answers.


def read(name: str) -> dict[str, Any]:
    path = ANSWERS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write(name: str, found: Mapping[str, Any]) -> None:
    """A line per model."""
    lines = [f"{json.dumps(model)}: {json.dumps(answer)}" for model, answer in found.items()]
    (ANSWERS / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def expanded(kept: dict[str, Answer], sets: Mapping[str, list[str]]) -> dict[str, Answer]:
    """Keys of reports, for the names of sets of keys."""
    for answer in kept.values():
        if "report" in answer:
            answer["report"] = sorted(key for name in answer["report"] for key in sets[name])
    return kept


def condensed(found: dict[str, Answer], sets: dict[str, list[str]]) -> dict[str, Answer]:
    """Names of sets of keys, a set per section of a report; what is new joins the sets."""
    for answer in found.values():
        if "report" in answer:
            sections: dict[str, list[str]] = {}
            for key in answer["report"]:
                sections.setdefault(key.split(".")[0], []).append(key)
            answer["report"] = [_name_of(keys, section, sets) for section, keys in sections.items()]
    return found


def _name_of(keys: list[str], section: str, sets: dict[str, list[str]]) -> str:
    names = (f"{section} {number}" for number in count(1))
    name = next(name for name in names if sets.get(name, keys) == keys)
    sets[name] = keys
    return name


def differences(name: str, kept: Mapping[str, Answer], found: Mapping[str, Answer]) -> list[str]:
    """A line for everything that is not as kept."""
    lines = []
    for model in dict.fromkeys((*kept, *found)):
        if model not in kept or model not in found:
            lines.append(f"{name} · {model}: {'new' if model in found else 'gone'}")
            continue
        old, new = kept[model], found[model]
        for item in dict.fromkeys((*old, *new)):
            if item != "close" and not agree(item, old, new):
                lines.append(f"{name} · {model} · {item}: {_short(old, new, item)}")
    return lines


def agree(item: str, old: Answer, new: Answer) -> bool:
    if item not in old or item not in new:
        return old.get("close", 0) is None and item in NUMBERS
    if old[item] == "either" or old[item] == new[item]:
        return True
    if item not in NUMBERS or "close" not in old or not all(isinstance(one[item], list) for one in (old, new)):
        return False
    return distance(old[item], new[item]) <= old["close"]


def distance(old: Any, new: Any) -> float:
    """The largest difference, relative to the largest number."""
    if len(old) != len(new):
        return math.inf
    a, b = np.array(old, dtype=float), np.array(new, dtype=float)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return math.inf
    a, b = a[np.isfinite(a)], b[np.isfinite(a)]
    scale, apart = np.abs(a).max(initial=0.0), float(np.abs(a - b).max(initial=0.0))
    return apart / scale if scale else math.inf if apart else 0.0


def _short(old: Answer, new: Answer, item: str) -> str:
    if isinstance(old.get(item), list) and isinstance(new.get(item), list) and item not in NUMBERS:
        gone, come = (sorted(set(a[item]) - set(b[item])) for a, b in ((old, new), (new, old)))
        return f"gone {gone}, new {come}"
    apart = ""
    if item in NUMBERS and "close" in old and all(isinstance(one.get(item), list) for one in (old, new)):
        apart = f" ({distance(old[item], new[item]):.1e} apart, allowed {old['close']:.0e})"
    return f"{old.get(item, 'none')} -> {new.get(item, 'none')}{apart}"


def joined(first: dict[str, Answer], second: dict[str, Answer]) -> dict[str, Answer]:
    """What holds of two builds: numbers as closely as they agree, `either` where they say different things."""
    for model, answer in first.items():
        other = second[model]
        for item in [item for item in answer if item not in ("close", *NUMBERS)]:
            if other.get(item) != answer[item]:
                answer[item] = "either"
        if isinstance(answer.get("close"), float):
            for item in [item for item in NUMBERS if isinstance(answer.get(item), list)]:
                apart = (
                    30 * distance(answer[item], other.get(item, ())) if isinstance(other.get(item), list) else math.inf
                )
                if item == "predictions" or apart <= 1e-6:
                    answer["close"] = rung(max(answer["close"] or math.inf, apart))
                else:
                    answer[item] = "either"
        if answer.get("close", 0) is None:
            for item in NUMBERS:
                answer.pop(item, None)
    return first
