"""Thirty-odd files as people have them, all of one small table: prices of flats, some of them rented.

`FILES` is the table: the name of a file, what is awkward about it, how it is written, and how it is fitted.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

N_ROWS = 240
Rows = list[list[Any]]


@dataclass(frozen=True)
class Awkward:
    """A file, or a folder of them. typed: what follows `certifit fit`; FILE stands for the file."""

    name: str
    about: str
    write: Callable[[Path], None]
    typed: str = "FILE --target price --model linear"


def columns() -> dict[str, list[Any]]:
    """price = 40 + 3 area + 25 in the centre - 2 age + noise, and days of sale."""
    rng = np.random.default_rng(26)
    area = rng.uniform(20, 140, N_ROWS).round(1)
    age = rng.integers(0, 60, N_ROWS)
    place = rng.choice(["centre", "north", "south"], N_ROWS)
    day = rng.integers(0, 700, N_ROWS)
    price = (40 + 3 * area + 25 * (place == "centre") - 2 * age + 0.05 * day + rng.normal(0, 8, N_ROWS)).round(2)
    sold = np.datetime64("2024-01-01") + day
    return {"area": area.tolist(), "age": age.tolist(), "place": place.tolist(), "sold": sold.astype(str).tolist(),
            "price": price.tolist()}  # fmt: skip


def table(**changed: Iterable[Any]) -> tuple[list[str], Rows]:
    """Header and rows, some columns replaced or added in front."""
    named = columns()
    added = {name: list(values) for name, values in changed.items() if name not in named}
    named = added | {name: list(changed.get(name, values)) for name, values in named.items()}
    return list(named), [list(row) for row in zip(*named.values(), strict=True)]


def text_of(header: Sequence[str] | None, rows: Rows, delimiter: str = ",", end: str = "", quote: int = 0) -> str:
    """The text of a CSV file; end: what stands behind every row."""
    lines = io.StringIO()
    writer = csv.writer(lines, delimiter=delimiter[0], lineterminator="\n", quoting=csv.QUOTE_MINIMAL | quote)
    writer.writerows(rows if header is None else [list(header), *rows])
    text = lines.getvalue()
    if len(delimiter) > 1:
        text = text.replace(delimiter[0], delimiter)
    return text.replace("\n", end + "\n") if end else text


def comma(value: float) -> str:
    return str(value).replace(".", ",")


def _plain(path: Path, encoding: str = "utf8", **changed: Iterable[Any]) -> None:
    path.write_bytes(text_of(*table(**changed)).encode(encoding))


def _decimal_comma(path: Path) -> None:
    named = columns()
    header, rows = table(area=map(comma, named["area"]), price=map(comma, named["price"]))
    path.write_text(text_of(header, rows, ";"))


def _written(form: str) -> Callable[[Path], None]:
    return lambda path: _plain(path, area=[form.format(value * 100) for value in columns()["area"]])


def _dates(form: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        parts = [day.split("-") for day in columns()["sold"]]
        _plain(path, sold=[form.format(y=year, m=month, d=day) for year, month, day in parts])

    return write


def _latin(path: Path) -> None:
    _plain(path, "latin1", place=[{"centre": "Zürich", "north": "Genève"}.get(x, x) for x in columns()["place"]])


def _gaps_in_target(path: Path) -> None:
    _plain(path, price=["" if k % 10 == 3 else value for k, value in enumerate(columns()["price"])])


def _sentinel(path: Path) -> None:
    _plain(path, area=[-999 if k % 7 == 3 else value for k, value in enumerate(columns()["area"])])


def _codes(path: Path) -> None:
    """District codes whose order means nothing: 1 and 4 are alike."""
    rng = np.random.default_rng(1)
    code = rng.integers(1, 5, N_ROWS)
    price = np.array(columns()["price"]) + 60 * np.isin(code, [2, 3])
    _plain(path, district=code.tolist(), price=price.round(2).tolist())


def _zip(path: Path) -> None:
    rng = np.random.default_rng(2)
    codes = ["01067", "01099", "04109", "10115", "80331"]
    _plain(path, zip=[codes[k] for k in rng.integers(0, 5, N_ROWS)])


def _few(path: Path) -> None:
    """Stars from 1 to 4 in 80 rows: grades or classes?"""
    header, rows = table()
    price = np.array([row[-1] for row in rows])
    stars = 1 + np.searchsorted(np.quantile(price, [0.25, 0.5, 0.75]), price)
    path.write_text(text_of([*header, "stars"], [[*row, star] for row, star in zip(rows, stars, strict=True)][:80]))


def _excel(path: Path) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    header, rows = table()
    for row in [header, *rows]:
        book.active.append(row)
    book.save(path)


def _feather(path: Path) -> None:
    import pyarrow as pa
    from pyarrow import feather

    feather.write_feather(pa.table(columns() | {"sold": pa.array(columns()["sold"]).cast(pa.date32())}), path)


def _json_lines(path: Path) -> None:
    header, rows = table()
    path.write_text("".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows))


def _folder(path: Path) -> None:
    """Two files, the second with its columns in another order."""
    path.mkdir()
    header, rows = table()
    (path / "a.csv").write_text(text_of(header, rows[:120]))
    (path / "b.csv").write_text(text_of(header[::-1], [row[::-1] for row in rows[120:]]))


def _lines(change: Callable[[str], str]) -> Callable[[Path], None]:
    """The plain file with its text changed."""
    return lambda path: path.write_bytes(change(text_of(*table())).encode())


def _mixed_ends(text: str) -> str:
    ends = ("\n", "\r\n", "\r")
    return "".join(line + ends[k % 3] for k, line in enumerate(text.splitlines()))


def _named_months(path: Path) -> None:
    days = np.array(columns()["sold"], dtype="datetime64[D]").tolist()
    _plain(path, sold=[day.strftime("%d %b %Y") for day in days])


def _row_names(text: str) -> str:
    """As R writes a frame: every row begins with a name that the header does not have."""
    header, *rows = text.splitlines()
    return "\n".join([header, *(f"{k + 1},{row}" for k, row in enumerate(rows))]) + "\n"


def _hive(path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    header, rows = table()
    for place in ("centre", "north", "south"):
        (path / f"place={place}").mkdir(parents=True)
        some = [row for row in rows if row[2] == place]
        named = {name: [row[k] for row in some] for k, name in enumerate(header) if name != "place"}
        named["sold"] = pa.array(named["sold"]).cast(pa.date32())
        parquet.write_table(pa.table(named), path / f"place={place}" / "part.parquet")


def _zstd(path: Path) -> None:
    import pyarrow as pa

    with pa.output_stream(path, compression="zstd") as file:
        file.write(text_of(*table()).encode())


FILES = (
    Awkward("comma.csv", "decimal comma, semicolons", _decimal_comma),
    Awkward("thousands.csv", "48,213.50", _written("{:,.2f}")),
    Awkward("dollars.csv", "$4,217.30", _written("${:,.2f}")),
    Awkward("percent.csv", "45.3%", lambda path: _plain(path, area=[f"{value}%" for value in columns()["area"]])),
    Awkward("latin.csv", "Zürich in latin-1", _latin),
    Awkward("wide.csv", "UTF-16", lambda path: _plain(path, "utf-16")),
    Awkward("gaps.csv", "one target in ten missing", _gaps_in_target),
    Awkward("spaces.csv", "a space after every comma", lambda path: path.write_text(text_of(*table(), ", "))),
    Awkward("comments.csv", "three lines of # on top",
            lambda path: path.write_text("# flats\n# from the register\n# 2026\n" + text_of(*table()))),
    Awkward("units.csv", "a line of units below the names",
            lambda path: path.write_text(text_of(*table()).replace("\n", "\nm²,years,,,€\n", 1))),
    Awkward("bare.csv", "no header", lambda path: path.write_text(text_of(None, table()[1])),
            "FILE --no-header --target column5 --model linear"),
    Awkward("trailing.csv", "a comma behind every row", lambda path: path.write_text(text_of(*table(), end=","))),
    Awkward("folder", "columns in another order in the second file", _folder),
    Awkward("book.xlsx", "an Excel workbook", _excel),
    Awkward("rows.jsonl", "JSON lines", _json_lines),
    Awkward("rows.feather", "Feather", _feather),
    Awkward("rows.csv.gz", "gzip", lambda path: path.write_bytes(gzip.compress(text_of(*table()).encode()))),
    Awkward("rows.csv.zst", "zstd", _zstd),
    Awkward("pipe.csv", "read from standard input", _plain, "- --target price --model linear < FILE"),
    Awkward("hive", "a folder place=centre/, place=north/, ...", _hive),
    Awkward("numbered.csv", "a first column 1..n", lambda path: _plain(path, id=range(1, N_ROWS + 1))),
    Awkward("zip.csv", "codes with leading zeros", _zip),
    Awkward("codes.csv", "codes 1 to 4", _codes, "FILE --target price"),
    Awkward("stars.csv", "a target of four whole numbers", _few, "FILE --target stars"),
    Awkward("day_first.csv", "31.01.2024", _dates("{d}.{m}.{y}")),
    Awkward("month_first.csv", "01/31/2024", _dates("{m}/{d}/{y}")),
    Awkward("sentinel.csv", "-999 for missing", _sentinel),
    Awkward("ends.csv", "three kinds of line ends", _lines(_mixed_ends)),
    Awkward("sep.csv", "`sep=;` on top, as Excel likes it", _lines(lambda text: "sep=;\n" + text.replace(",", ";"))),
    Awkward("cells.csv", "commas and line ends within quoted cells",
            _lines(lambda text: text.replace("centre", '"the ""old"" centre,\nby the river"'))),
    Awkward("swiss.csv", "4'217.30", lambda path: _plain(
        path, area=[f"{100 * value:,.2f}".replace(",", "'") for value in columns()["area"]])),
    Awkward("months.csv", "31 Jan 2024", _named_months),
    Awkward("yield.csv", "80 kg/ha", lambda path: _plain(path, area=[f"{value} kg/ha" for value in columns()["area"]])),
    Awkward("from_r.csv", "row names without a name", _lines(_row_names)),
    Awkward("twitter.csv", "identifiers beyond 2^53",
            lambda path: _plain(path, id=[9007199254740993 + 7919 * k * k for k in range(N_ROWS)])),
    Awkward("marked.csv", "UTF-8 with a mark, a target with spaces",
            _lines(lambda text: "\ufeff" + text.replace("price", " price of the flat ")),
            "FILE --target 'price of the flat' --model linear"),
)  # fmt: skip


def write_all(folder: Path) -> None:
    """All of them."""
    for file in FILES:
        file.write(folder / file.name)
