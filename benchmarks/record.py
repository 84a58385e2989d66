"""Result lines: read, checked against schema.json, written. One JSON object a line."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]
SCHEMA: dict[str, Any] = json.loads(Path(__file__).with_name("schema.json").read_text())
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def read(path: Path) -> list[Record]:
    return [checked(json.loads(line)) for line in path.read_text().splitlines() if line]


def write(path: Path, records: Iterable[Record]) -> None:
    lines = [json.dumps(checked(record), allow_nan=False) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines))


def checked(record: Record) -> Record:
    faults = list(violations(record, SCHEMA, "line"))
    if faults:
        raise ValueError("; ".join(faults))
    return record


def violations(value: Any, schema: dict[str, Any], where: str) -> Iterable[str]:
    """The part of JSON Schema that schema.json uses: type, enum, minimum, required, properties, items."""
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} must be one of {schema['enum']}. Got {value!r}."
    if "type" in schema and not has_type(value, schema["type"]):
        yield f"{where} must be of type {schema['type']}. Got {value!r}."
        return
    if "minimum" in schema and value is not None and not value >= schema["minimum"]:
        yield f"{where} must be >= {schema['minimum']}. Got {value!r}."
    if isinstance(value, dict):
        known = schema.get("properties", {})
        yield from (f"{where} lacks {name!r}." for name in schema.get("required", ()) if name not in value)
        if not schema.get("additionalProperties", True):
            yield from (f"{where} has an unknown {name!r}." for name in value if name not in known)
        for name, part in known.items():
            if name in value:
                yield from violations(value[name], part, f"{where}.{name}")
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from violations(item, schema.get("items", {}), f"{where}[{i}]")


def has_type(value: Any, names: str | list[str]) -> bool:
    allowed = [names] if isinstance(names, str) else names
    if isinstance(value, bool):
        return "boolean" in allowed
    return any(isinstance(value, TYPES[name]) for name in allowed)
