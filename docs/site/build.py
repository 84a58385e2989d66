"""The site: python -m docs.site.build lays the pages out in build/docs/pages, draws the pictures, and runs Sphinx.

build/docs/site/index.html is then readable without a server. Where Chromium is installed, every page is looked at.
"""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from contextlib import chdir
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.site import api, chapters, check, coverage

DOCS = Path(__file__).resolve().parents[1]
PAGES = DOCS.parent / "build" / "docs" / "pages"
SITE = DOCS.parent / "build" / "docs" / "site"
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")


def lay_out() -> None:
    """Copy pages and pictures; a link to a file outside of docs/ becomes its name."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(DOCS, PAGES, ignore=shutil.ignore_patterns("site", "__pycache__"))
    for page in PAGES.rglob("*.md"):
        page.write_text(LINK.sub(partial(_inside, page), page.read_text()))


def _inside(page: Path, link: re.Match[str]) -> str:
    is_outside = not link[2].startswith("http") and not (page.parent / link[2]).resolve().is_relative_to(PAGES)
    return link[1] if is_outside else link[0]


def draw() -> int:
    """Run the chapters and save the pictures that they leave; their number."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    count = 0
    for page in sorted((PAGES / "course").glob("*.md")):
        folder = page.parent / "pictures"
        folder.mkdir(exist_ok=True)

        def save(name: str, folder: Path = folder) -> None:
            nonlocal count
            plt.gcf().savefig(folder / f"{name}.png", dpi=110, bbox_inches="tight")
            plt.close("all")
            count += 1

        with TemporaryDirectory() as scratch, chdir(scratch), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # chapters show fits that warn
            chapters.run(page, save)
    return count


def index() -> None:
    """Contents for the side of every page: what the two index pages link, in that order, then all others."""
    (PAGES / "coverage.md").write_text(coverage.page())
    reference = [f"reference/{name}" for name in api.write_reference(PAGES / "reference")]
    course = _linked(PAGES / "course" / "index.md")
    guides = [name for name in _linked(PAGES / "index.md") if not name.startswith("course/")]
    known = {"index", "course/index", *course, *guides, *reference}
    every = [path.relative_to(PAGES).as_posix().removesuffix(".md") for path in sorted(PAGES.rglob("*.md"))]
    others = [name for name in every if name not in known and not name.startswith("what-others-say/")]
    cases = [name for name in every if name.startswith("what-others-say/")]
    _contents(PAGES / "index.md", "The course", ["course/index"])
    _contents(PAGES / "index.md", "Guides", [*guides, *others])
    _contents(PAGES / "index.md", "Reference", reference)
    _contents(PAGES / "course" / "index.md", "Chapters", [name.removeprefix("course/") for name in course])
    _contents(PAGES / "what-others-say.md", "Cases", cases)


def _linked(page: Path) -> list[str]:
    targets = [(page.parent / link[2]).resolve() for link in LINK.finditer(page.read_text()) if link[2].endswith(".md")]
    return list(dict.fromkeys(path.relative_to(PAGES).as_posix().removesuffix(".md") for path in targets))


def _contents(page: Path, caption: str, names: list[str]) -> None:
    with page.open("a") as file:
        file.write("\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```", ""]))


def main() -> int:
    """Build; the number of faults."""
    missing = api.left_out()
    if missing:
        print(f"No page of the reference has {missing}: add their module to ROOMS in docs/site/api.py.")
        return len(missing)
    from sphinx.cmd.build import main as sphinx

    lay_out()
    index()
    print(f"{draw()} pictures drawn")
    shutil.rmtree(SITE, ignore_errors=True)
    conf = str(Path(__file__).parent)
    faults = sphinx(["-q", "-W", "--keep-going", "-c", conf, str(PAGES), str(SITE)])
    if not faults:
        faults = check.files(SITE) + check.browser(SITE)
    print(f"{SITE / 'index.html'}: {faults} faults")
    return faults


if __name__ == "__main__":
    sys.exit(main() != 0)
