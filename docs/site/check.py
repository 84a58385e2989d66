"""The built site, looked at: links and addresses in its files, then every page in headless Chromium."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from docs.site.chromium import Browser, address, program

PHONE, DESK = 360, 1280
# what a reader types -> a page that must be among the first results
SEARCHES = {
    "did not converge": "questions",
    "p-value": "inference",
    "perfect separation": "logistic",
    "which model is better": "questions",
    "matrix calculus": "course/matrix-calculus",
    "Newton": "optimisers",
}
FIRST = 8
_SOURCES = re.compile(r"<(?:script|img|link|iframe|source)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"")
_LINKS = re.compile(r"<a\b[^>]*?\bhref=\"([^\"]+)\"")
_ANCHORS = re.compile(r"\bid=\"([^\"]+)\"")
_LIST = """new Promise(done => { const look = () => {
const items = [...document.querySelectorAll('#search-results li a')];
const is_done = /found|did not match/.test(document.querySelector('#search-results')?.innerText || '');
is_done ? done(items.map(a => a.getAttribute('href'))) : setTimeout(look, 50); }; look(); })"""


def files(site: Path) -> int:
    """Faults of links, pictures and scripts that the files name."""
    pages = {path: path.read_text() for path in site.rglob("*.html")}
    anchors = {path: set(_ANCHORS.findall(text)) for path, text in pages.items()}
    faults = [
        f"{path.relative_to(site)}: {fault}" for path, text in pages.items() for fault in _faults(path, text, anchors)
    ]
    faults += [
        f"{sheet.relative_to(site)}: loads from elsewhere"
        for sheet in site.rglob("*.css")
        if re.search(r"url\([\"']?(https?:)?//|@import [\"'](https?:)?//", sheet.read_text())
    ]
    return _told(faults)


def _faults(path: Path, text: str, anchors: dict[Path, set[str]]) -> list[str]:
    loaded = [source for source in _SOURCES.findall(text) if re.match(r"(https?:)?//", source)]
    faults = [f"loads {source} from elsewhere" for source in loaded]
    for link in _LINKS.findall(text):
        if re.match(r"https?:|mailto:|javascript:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = (path.parent / name.partition("?")[0]).resolve() if name else path
        if not target.exists():
            faults.append(f"links to {link}, which is not there")
        elif anchor and target in anchors and anchor not in anchors[target]:
            faults.append(f"links to {link}, and there is no such place")
    return faults


def browser(site: Path) -> int:
    """Faults of pages as a browser shows them, at the width of a phone and of a desk."""
    if program() is None:
        print("There is no Chromium on this machine: pages were not looked at, and searches not tried.")
        return 0
    tab = Browser()
    faults: list[str] = []
    try:
        for path in sorted(site.rglob("*.html")):
            for width in (PHONE, DESK):
                found = _looked_at(tab, path, width)
                faults += [f"{path.relative_to(site)} at {width} px: {fault}" for fault in found]
        for words, page in SEARCHES.items():
            tab.open(address(site / "search.html") + f"?q={quote(words)}", DESK)
            results = tab.value(_LIST) or []
            if not any(page in result for result in results[:FIRST]):
                faults.append(f"search for {words!r}: {page} is not among the first {FIRST} of {results[:8]}")
    finally:
        tab.close()
    return _told(faults)


def _looked_at(tab: Any, path: Path, width: int) -> list[str]:
    faults = []
    for event in tab.open(address(path), width):
        method, params = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(
            ("file:", "data:", "about:")
        ):
            faults.append(f"asks for {params['request']['url']}")
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            faults.append(f"console: {params['args']}")
        if method == "Log.entryAdded" and params["entry"]["level"] == "error":
            faults.append(f"log: {params['entry']['text']} {params['entry'].get('url', '')}")
        if method == "Runtime.exceptionThrown":
            faults.append(f"exception: {params['exceptionDetails']['text']}")
    wide = tab.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 1:
        faults.append(f"is {wide} px wider than the window")
    broken = tab.value("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
    return faults + [f"has a broken picture {name}" for name in broken]


def _told(faults: list[str]) -> int:
    for fault in faults:
        print(fault)
    return len(faults)
