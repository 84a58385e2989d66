"""Writes unicode_tables.hpp from the Unicode tables of the Python that runs it: python cpp/text/unicode_tables.py

The tables are fixed in the core, so that a saved model reads a text in the same way under every Python.
"""

import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

LAST = 0x10FFFF
SIGMA, FINAL = "\u03a3", "\u03c2"
WIDTH = 120


def ends_in_final_sigma(before: str) -> bool:
    """Whether a capital sigma after this text becomes a final one."""
    return (before + SIGMA).lower()[-1] == FINAL


def is_cased(c: str) -> bool:
    """Has case and is not case-ignorable."""
    return ends_in_final_sigma(" " + c)


def is_ignorable(c: str) -> bool:
    """Case-ignorable: skipped when the neighbours of a sigma are looked at."""
    return ends_in_final_sigma("A" + c) and not is_cased(c)


def is_word(c: str) -> bool:
    """What \\w of Python's re takes."""
    return c.isalnum() or c == "_"


def ranges(holds: Callable[[str], bool]) -> Iterator[str]:
    """First and last of each run of characters of which the claim holds."""
    first = None
    for code in range(LAST + 2):
        inside = code <= LAST and holds(chr(code))
        if inside and first is None:
            first = code
        elif not inside and first is not None:
            yield f"{{{first:#x}, {code - 1:#x}}}"
            first = None


def lower_runs() -> Iterator[str]:
    """Runs with one distance, one or two apart. Only U+0130 becomes two characters; it is no part of the table."""
    changed = [(code, ord(low) - code) for code in range(LAST + 1) if len(low := chr(code).lower()) == 1]
    changed = [(code, distance) for code, distance in changed if distance]
    runs: list[list[int]] = []  # first, last, step, distance
    for code, distance in changed:
        if runs and runs[-1][3] == distance:
            first, last, step, _ = runs[-1]
            gap = code - last
            if gap in (1, 2) and (first == last or gap == step):
                runs[-1][1:3] = [code, gap]
                continue
        runs.append([code, code, 1, distance])
    for first, last, step, distance in runs:
        yield f"{{{first:#x}, {last:#x}, {step}, {distance}}}"


def table(comment: str, kind: str, name: str, entries: Iterator[str]) -> list[str]:
    """Lines of a C++ array."""
    lines, line = [f"// {comment}", f"inline constexpr {kind} {name}[] = {{"], "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > WIDTH:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    return [*lines, line, "};", ""]


def main() -> None:
    """Write the file."""
    lines = [
        f"// Written by unicode_tables.py from Unicode {unicodedata.unidata_version}. Do not edit.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "namespace certifit::text {",
        "",
        f'inline constexpr char unicode_version[] = "{unicodedata.unidata_version}";',
        "",
        "struct CodeRange {",
        "  uint32_t first, last;",
        "};",
        "",
        "struct LowerRun {  // first, first + step, .., last; the lower-case letter is `distance` away",
        "  uint32_t first, last, step;",
        "  int32_t distance;",
        "};",
        "",
        "// clang-format off",
        *table(
            "Letters, digits, other numbers and _: \\w of Python's re.", "CodeRange", "word_ranges", ranges(is_word)
        ),
        *table("Letters with case that are not case-ignorable.", "CodeRange", "cased_ranges", ranges(is_cased)),
        *table("Case-ignorable characters.", "CodeRange", "ignorable_ranges", ranges(is_ignorable)),
        *table("Lower case, one character to one.", "LowerRun", "lower_runs", lower_runs()),
        "// clang-format on",
        "",
        "}  // namespace certifit::text",
    ]
    Path(__file__).with_suffix(".hpp").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
