"""What is fuzzed: functions of bytes, each with the inputs that it starts from.

A target answers, or refuses in words; anything else that it raises, and any end of the process, is a find.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import atheris
import core_calls
import forge
import fuzz
import fuzz_bindings
import numpy as np

import certifit as cf

SEPARATOR = b"\n"
CELLS = [
    "2",
    "-2.5e3",
    '"a, ""b2"""',
    "2024-02-29",
    "29.02.2024 12:30",
    "1.234,2",
    "2 %",
    "€ 2",
    "NA",
    "",
    "yes",
    "0x2",
    "nan",
]
N_CALLS = 3  # legal calls of every function that the bindings start from


def model_file(data: bytes) -> None:
    """Metadata, the table of arrays and the payload: the digests are made right, so that mutants get past them."""
    text, table, payload = [*data.split(SEPARATOR, 2), b"", b""][:3]
    try:
        entries = {**json.loads(table), "__metadata__": {"certifit": forge.dumps(json.loads(text))}}
        mutant = forge.seal(entries, payload)
    except (ValueError, TypeError, RecursionError):
        mutant = data
    fuzz.outcome([], mutant, is_blind=False)


def model_files() -> Iterable[bytes]:
    for data in fuzz.files():
        table, payload = forge.split(data)
        text = table.pop("__metadata__")["certifit"]
        yield SEPARATOR.join([text.encode(), forge.dumps(table).encode(), payload])


def csv(data: bytes) -> None:
    """A table is surveyed and encoded, twice with the same rows."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(data)
        file.flush()
        try:
            source = cf.scan_csv(file.name, encoding=None)
            encoder = cf.TableEncoder().fit_source(source)
            once, again = (np.vstack(list(source.through(encoder).map(_rows))) for _ in range(2))
        except ValueError as error:
            assert str(error), "an error without words"
        else:
            assert np.array_equal(once, again, equal_nan=True), "read twice, the rows differ"


def _rows(block: Any) -> Any:
    return np.asarray(block.X.toarray() if hasattr(block.X, "toarray") else block.X)


def tables() -> Iterable[bytes]:
    for delimiter in ",;\t|":
        for place in range(0, len(CELLS), 3):
            few = CELLS[place : place + 3]
            rows = [delimiter.join(cell.replace("2", str(k + 1)) for cell in few) for k in range(8)]
            text = "\n".join([delimiter.join("abcdefg"[: len(few)]), *rows]) + "\n"
            yield from (text.encode(), text.replace("\n", "\r\n").encode("utf-16"), text.encode("cp1252"))


class Choices:
    """The numbers of a generator that `damaged` asks for, from the bytes of an input."""

    def __init__(self, source: Any) -> None:
        self.source = source

    def random(self) -> float:
        return float(self.source.ConsumeProbability())

    def integers(self, n: int, size: int | None = None) -> Any:
        if size is not None:
            return [self.integers(n) for _ in range(size)]
        return self.source.ConsumeIntInRange(0, n - 1)

    def choice(self, values: Any) -> Any:
        return values[self.integers(len(values))]

    def permutation(self, n: int) -> list[int]:
        return sorted(range(n), key=lambda _: self.source.ConsumeIntInRange(0, 255))


def bindings(data: bytes) -> None:
    """A legal call of the compiled core, damaged; a call that takes a second is interrupted and must answer."""
    source = atheris.FuzzedDataProvider(data)
    choose = Choices(source)
    name = fuzz_bindings.NAMES[choose.integers(len(fuzz_bindings.NAMES))]
    arguments = core_calls.CALLS[name](np.random.default_rng(source.ConsumeIntInRange(0, N_CALLS - 1)))
    for _ in range(choose.integers(4)):
        chosen = list(arguments)[choose.integers(len(arguments))]
        arguments[chosen] = fuzz_bindings.damaged(arguments[chosen], choose)
    fuzz_bindings.end_of(name, arguments)


def calls() -> Iterable[bytes]:
    """FuzzedDataProvider takes its integers from the end."""
    fuzz_bindings.limit()
    rng = np.random.default_rng(0)
    for place in range(len(fuzz_bindings.NAMES)):
        yield from (rng.bytes(size) + bytes([seed, place]) for seed, size in enumerate((0, 8, 40)))


TARGETS: dict[str, tuple[Callable[[bytes], None], Callable[[], Iterable[bytes]]]] = {
    "model_file": (model_file, model_files),
    "csv": (csv, tables),
    "bindings": (bindings, calls),
}
