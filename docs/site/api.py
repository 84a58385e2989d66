"""The reference of the public names, from their docstrings: one Markdown page per room of the package."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import certifit

# title of the page -> the modules whose public names it has, by the start of their dotted names
ROOMS = {
    "Models": ("models",),
    "Choosing and comparing": ("selection",),
    "Evaluation and bounds": (
        "evaluation.bias_variance",
        "evaluation.bounds",
        "evaluation.importance",
        "evaluation.independence",
        "evaluation.margins",
        "evaluation.metrics",
    ),
    "Pictures": ("evaluation.pictures",),
    "Optimisers, losses and penalties": ("minimise", "mathematics.losses", "mathematics.penalties"),
    "Families and kernels": ("mathematics.families", "mathematics.kernels"),
    "Rows, tables and text": ("data", "maps"),
    "Model files and limits": ("modelfile", "runtime"),
}
_ENTRY = re.compile(r"^[\w*\"'`][\w*\"'`., ()=\[\]]* : ")
_MARKS = re.compile(r"([\\*_\[\]<>$|#{}~])")


def write_reference(folder: Path) -> list[str]:
    """Write the pages into a folder; their names, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for title, rooms in ROOMS.items():
        names = [name for name in sorted(certifit.__all__) if _is_in(name, rooms)]
        sections = [line for name in names for line in _section(name, getattr(certifit, name))]
        page = title.lower().replace(",", "").replace(" ", "-")
        (folder / f"{page}.md").write_text("\n".join([f"# {title}", "", *sections]))
        pages.append(page)
    return pages


def left_out() -> list[str]:
    """Public names that no page has."""
    return [name for name in certifit.__all__ if not any(_is_in(name, rooms) for rooms in ROOMS.values())]


def _is_in(name: str, rooms: tuple[str, ...]) -> bool:
    thing = getattr(certifit, name)
    module = thing.__name__ if inspect.ismodule(thing) else thing.__module__
    return module.removeprefix("certifit.").startswith(rooms)


def _section(name: str, thing: Any, level: int = 2) -> Iterator[str]:
    yield from (f"{'#' * level} {_escaped(name)}", "")
    if inspect.ismodule(thing):
        yield from markdown(thing.__doc__ or "")
        for inner in sorted(getattr(thing, "__all__", None) or _public(thing)):
            yield from _section(f"{name}.{inner}", getattr(thing, inner), level + 1)
        return
    if callable(thing):
        yield from ("```text", f"{name}{_signature(thing)}", "```", "")
    yield from markdown(thing.__doc__ or "")
    if inspect.isclass(thing):
        yield from _methods(thing)


def _public(module: Any) -> list[str]:
    members = inspect.getmembers(module, lambda part: inspect.isclass(part) or inspect.isfunction(part))
    return [name for name, part in members if not name.startswith("_") and part.__module__ == module.__name__]


def _signature(thing: Any) -> str:
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return "(...)"
    parts = [part.replace(annotation=inspect.Parameter.empty) for part in signature.parameters.values()]
    text = str(signature.replace(parameters=parts, return_annotation=inspect.Signature.empty))
    return re.sub(r"<[^>]* at 0x[0-9a-f]+>|<function ([\w.]+)[^>]*>", r"\1", text)


def _methods(cls: type) -> Iterator[str]:
    ours = [
        (name, part)
        for name, part in inspect.getmembers(cls, callable)
        if not name.startswith("_") and (getattr(part, "__module__", "") or "").startswith("certifit") and part.__doc__
        if not (name.endswith("_proba") and getattr(cls, "has_margins", False))
    ]
    if not ours:
        return
    yield from ("**Methods**", "")
    for name, part in ours:
        first = inspect.cleandoc(part.__doc__).split("\n\n")[0].replace("\n", " ")
        yield f"- `{name}`: {_escaped(first)}"
    yield ""


def markdown(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: headings bold, entries a list, formulas and examples as they stand."""
    for block in re.split(r"\n\s*\n", inspect.cleandoc(docstring)):
        lines = block.split("\n")
        while len(lines) > 1 and re.fullmatch(r"-{3,}", lines[1].strip()):
            yield from (f"**{lines[0].strip()}**", "")
            lines = lines[2:]
        if lines and lines[0].startswith(">>>"):
            yield from ("```python", *lines, "```", "")
        elif lines and _ENTRY.match(lines[0]):
            yield from _entries(lines)
        elif any(line.startswith(" ") or "   " in line.strip() for line in lines):
            yield from ("```text", *lines, "```", "")
        elif lines:
            yield from (*(_escaped(line) for line in lines), "")


def _entries(lines: list[str]) -> Iterator[str]:
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if _ENTRY.match(line) and not line.startswith(" "):
            names, words = line.split(" : ", 1)
            is_explained = after.startswith(" ")
            yield f"- `{names.replace('`', '')}` : {_escaped(words)}" + "\\" * is_explained
        else:
            yield f"  {_escaped(line.strip())}"
    yield ""


def _escaped(text: str) -> str:
    """Text whose signs mean themselves, outside of backticks."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _MARKS.sub(r"\\\1", text.replace("`", "'"))
    return "`".join(part if i % 2 else _MARKS.sub(r"\\\1", part) for i, part in enumerate(parts))
