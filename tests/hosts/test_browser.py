"""The page of `calcore report` in a real browser: quiet, reached by keyboard, legible, and whole in print.

Chromium is the system's (`apt-get install chromium`), driven by Playwright. Every check is a function that
returns what is wrong; the last tests give each of them a page that has the fault.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pypdfium2
import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from pyarrow import parquet

SEED = 20240614
WIDTHS = (360, 800, 1400)
SIDES = ("top", "right", "bottom", "left")
MARGIN = 0.4
"""Of the paper, in inches."""

LONG = "p" * 200
MARKUP = "<img src=x onerror=alert(1)>"
NAMES = ("<script>alert(1)</script>", "שלום עולם", "\u202eevil", "😀🏳️‍🌈", "x" * 200, "a&b\"'>")

Faults = list[str]


# --- the pages


def columns(n: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(SEED)
    scores = rng.random(n)
    return (rng.random(n) < scores**1.3).astype(np.int8), scores


def rows_of(kind: str) -> tuple[dict[str, Any], list[str]]:
    """Columns of a file, and the options of the command for it."""
    if kind == "three rows":
        return {"late": [0, 1, 1], "p": [0.2, 0.5, 0.7]}, []
    if kind == "one class":
        return {"late": [0] * 80, "p": [0.1, 0.3] * 40}, []
    if kind == "binary":
        labels, scores = columns(20_000)
        return {"late": labels, "p": scores}, []
    labels, scores = columns(3_000)
    if kind == "segments":
        region = [f"region {i % 30:02d}" for i in range(3_000)]
        words = ["--label", "late", "--score", "p", "--by", "region"]
        return {"late": labels, "p": scores, "region": region}, words
    if kind == "classes":
        rng = np.random.default_rng(SEED)
        P = rng.dirichlet([2.0, 1.0, 1.0], 3_000)
        drawn = (rng.random(3_000)[:, None] > P.cumsum(axis=1)).sum(axis=1)
        names = ("cat", "dog", "eel")
        found = {"kind": np.array(names)[drawn]} | {name: P[:, j] for j, name in enumerate(names)}
        return found, ["--label", "kind", "--classes", ",".join(names)]
    if kind == "models":
        models = {"p": scores, LONG: scores**2, MARKUP: scores**1.2}
        return {"late": labels} | models, [word for name in models for word in ("--score", name)]
    assert kind == "hostile"
    segments = [NAMES[i % len(NAMES)] for i in range(3_000)]
    words = ["--label", "late", "--score", LONG, "--by", MARKUP]
    return {"late": labels, LONG: scores, MARKUP: segments}, words


KINDS = ("binary", "three rows", "one class", "segments", "classes", "models", "hostile")


@pytest.fixture(scope="module", params=KINDS, ids=[kind.replace(" ", "-") for kind in KINDS])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the command writes for each kind of rows."""
    return written(request.param, tmp_path_factory.mktemp(request.param.replace(" ", "-")))


def written(kind: str, folder: Path) -> Path:
    rows, words = rows_of(kind)
    parquet.write_table(pa.table(rows), folder / "rows.parquet")
    command = [sys.executable, "-m", "calcore", "report", "rows.parquet", *words, "--resamples", "99"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "rows.report.html"


# --- the browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium, "chromium is not installed: apt-get install chromium"
    with sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=chromium, headless=True, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


@contextmanager
def opened(browser: Browser, path: Path, width: int = 1400, **options: Any) -> Iterator[tuple[Page, Faults]]:
    """A file in a window of its own without a network, and what it asked for or complained of until now."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
    page = context.new_page()
    heard: Faults = []
    page.on("console", lambda m: heard.append(f"console, {m.type}: {m.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (heard.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda r: r.url == path.as_uri() or heard.append(f"request: {r.url}"))
    page.goto(path.as_uri(), wait_until="load")
    try:
        yield page, heard
    finally:
        context.close()


# --- the checks


def noise(page: Page, heard: Faults) -> Faults:
    """Messages, errors, dialogs and requests, also those of a moment later."""
    page.wait_for_timeout(200)
    return heard


def overflow(page: Page) -> Faults:
    """Elements that make the page scroll sideways; what scrolls by itself may be wide."""
    return page.evaluate("""() => {
        const width = document.documentElement.clientWidth;
        if (document.documentElement.scrollWidth <= width) return [];
        const wide = [...document.body.querySelectorAll('*')]
            .filter(e => !e.matches('.skip') && e.getBoundingClientRect().right > width + 1)
            .map(e => `${e.tagName} ${e.className} ends at ${e.getBoundingClientRect().right}`);
        return [`the page is ${document.documentElement.scrollWidth} wide`, ...wide];
    }""")


def unprinted(page: Page) -> Faults:
    """Words of the page that are not on paper between its margins, and elements that cut off what they hold.

    Lines in other scripts are left out: what is read back of them is in another order.
    """
    page.emulate_media(media="print")
    words, faults = page.evaluate("""() => [
        [...document.body.querySelectorAll('h1, h2, h3, p, li, th, td, caption, pre')]
            .filter(e => !e.matches('nav *'))
            .filter(e => !/[^\\x00-\\x7f–−∈]/.test((e.closest('tr') || e).textContent))
            .map(e => e.textContent),
        [...document.body.querySelectorAll('*')]
            .filter(e => getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth)
            .map(e => `${e.tagName} holds ${e.scrollWidth} in ${e.clientWidth}`)]""")
    found = ""
    document = pypdfium2.PdfDocument(page.pdf(format="A4", margin=dict.fromkeys(SIDES, f"{MARGIN}in")))
    for sheet in document:
        text, inset = sheet.get_textpage(), 72 * MARGIN - 1
        width, height = sheet.get_size()
        found += text.get_text_bounded(inset, inset, width - inset, height - inset)
        text.close()
    document.close()
    found = squeezed(found)
    expected = Counter(squeezed(text) for text in words if text.strip())
    lost = [text for text, n in expected.items() if found.count(text) < n]
    return [*faults, *(f"not or too seldom on paper: {text[:40]!r}" for text in lost)]


def squeezed(text: str) -> str:
    """Without spaces, line breaks, hyphens and ligatures, of which print has its own."""
    return re.sub(r"[-\s\x02\ufffe]", "", unicodedata.normalize("NFKC", text))


def contrast(page: Page, least: float = 4.5) -> Faults:
    """Text whose colour is too close to that of what it stands on (WCAG 2, relative luminance)."""
    return page.evaluate(
        """least => {
        const colour = text => {
            const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
            return [r, g, b, a];
        };
        const over = (top, below) => below.map((c, i) => i < 3 ? top[i] * top[3] + c * (1 - top[3]) : 1);
        const luminance = c => {
            const [r, g, b] = c.slice(0, 3)
                .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const canvas = matchMedia('(prefers-color-scheme: dark)').matches
            && getComputedStyle(document.documentElement).colorScheme.includes('dark') ? 18 : 255;
        const faults = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
            const e = walk.currentNode.parentElement;
            if (!walk.currentNode.data.trim() || !e.getClientRects().length) continue;
            const layers = [];
            for (let up = e; up; up = up.parentElement)
                layers.push(colour(getComputedStyle(up).backgroundColor));
            const ground = layers.reduceRight((below, top) => over(top, below), [canvas, canvas, canvas, 1]);
            const ink = over(colour(getComputedStyle(e).color), ground);
            const [low, high] = [luminance(ink), luminance(ground)].sort((a, b) => a - b);
            const ratio = (high + 0.05) / (low + 0.05);
            if (ratio < least) faults.push(`${e.tagName} ${ratio.toFixed(2)}: ${e.textContent.slice(0, 30)}`);
        }
        return faults;
    }""",
        least,
    )


def pictures(page: Page) -> Faults:
    """Images that do not show, or that have no words for those who do not see them."""
    return page.evaluate("""() => [...document.images].filter(
        i => !i.complete || !i.naturalWidth || !i.naturalHeight || !i.width || !(i.alt || '').trim()
    ).map(i => `image ${i.naturalWidth} x ${i.naturalHeight}, alt "${i.alt}"`)""")


def headings(page: Page) -> Faults:
    """One h1, first; no level left out on the way down; none empty."""
    found = page.evaluate("""() => [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')]
        .map(h => [Number(h.tagName[1]), h.innerText.trim()])""")
    levels = [level for level, _ in found]
    faults = [f"h{level} without words" for level, words in found if not words]
    if levels[:1] != [1] or levels.count(1) != 1:
        faults.append(f"levels {levels}: h1 must be first and alone")
    faults += [f"h{b} after h{a}" for a, b in pairwise(levels) if b > a + 1]
    return faults


STOPS = "a[href], button, input, select, textarea, summary, [tabindex]:not([tabindex^='-'])"

FOCUSED = """() => {
    const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
    return {
        stop: window.stops.indexOf(e), words: (e.getAttribute('aria-label') || e.innerText).trim(),
        tag: e.tagName, ringed: e.matches(':focus-visible') && style.outlineStyle !== 'none'
            && parseFloat(style.outlineWidth) >= 2 && colourful(style.outlineColor),
        seen: box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth,
        open: e.parentElement && e.parentElement.open,
    };
    function colourful(text) { const [, , , a = 1] = text.match(/[\\d.]+/g).map(Number); return a > 0; }
}"""


def keyboard(page: Page) -> Faults:
    """Tab must reach all there is to reach, in the order of the page, seen, ringed and named."""
    n = page.evaluate(
        """stops => (window.stops = [...document.querySelectorAll(stops)]
            .filter(e => e.getClientRects().length)).length""",
        STOPS,
    )
    faults = []
    for i in range(n):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUSED)
        if at["stop"] != i:
            return [
                *faults,
                f"Tab {i + 1} of {n} came to {at['tag']} {at['words'][:30]!r}, number {at['stop']}",
            ]
        if not (at["ringed"] and at["seen"] and at["words"]):
            faults.append(f"Tab {i + 1}: {at}")
        if at["tag"] == "SUMMARY":
            page.keyboard.press("Enter")
            if page.evaluate(FOCUSED)["open"] == at["open"]:
                faults.append(f"Enter does nothing to {at['words']!r}")
            page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    if page.evaluate(FOCUSED)["stop"] != -1:
        faults.append("Tab does not leave the page")
    return faults


# --- what must hold of every report


def test_asks_for_nothing_and_complains_of_nothing(browser: Browser, report: Path) -> None:
    with opened(browser, report) as (page, heard):
        assert noise(page, heard) == []
        assert page.title().startswith("Calibration of ")


@pytest.mark.parametrize("width", WIDTHS)
def test_does_not_scroll_sideways(
    request: pytest.FixtureRequest, browser: Browser, report: Path, width: int
) -> None:
    with opened(browser, report, width) as (page, _):
        assert overflow(page) == []


def test_works_with_the_keyboard(browser: Browser, report: Path) -> None:
    with opened(browser, report, 800) as (page, _):
        assert keyboard(page) == []


def test_links_lead_where_they_say(browser: Browser, report: Path) -> None:
    """Enter on a link brings its section into view; the next Tab goes on from there."""
    with opened(browser, report, 800) as (page, heard):
        links = page.evaluate("() => [...document.querySelectorAll('a[href]')].map(a => a.hash)")
        assert len(links) > 5
        verdict = "#models" if "models" in report.parent.name else "#verdict"
        assert links[0] == verdict, "the first link skips what comes before"
        for i, target in enumerate(links):
            page.locator("a[href]").nth(i).focus()
            page.keyboard.press("Enter")
            section = page.locator(target)
            box = section.bounding_box()
            assert box is not None
            assert box["y"] < 900
            assert box["y"] + box["height"] > 0
            page.keyboard.press("Tab")
            after = section.evaluate(
                "s => s.contains(document.activeElement) "
                "|| !!(s.compareDocumentPosition(document.activeElement) & Node.DOCUMENT_POSITION_FOLLOWING)"
            )
            assert after, target
        assert heard == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_is_legible(browser: Browser, report: Path, scheme: Any) -> None:
    with opened(browser, report, 800, color_scheme=scheme) as (page, _):
        assert page.evaluate(f"() => matchMedia('(prefers-color-scheme: {scheme})').matches")
        assert contrast(page) == []


def test_does_not_move(browser: Browser, report: Path) -> None:
    """Nothing is animated, whether or not less motion is asked for, and both look the same."""
    seen = []
    for motion in ("no-preference", "reduce"):
        with opened(browser, report, 800, reduced_motion=motion) as (page, _):
            assert page.evaluate("() => document.getAnimations().length") == 0
            seen.append(page.screenshot(full_page=True))
    assert seen[0] == seen[1]


def test_pictures_and_headings(browser: Browser, report: Path) -> None:
    with opened(browser, report) as (page, _):
        assert page.evaluate("() => document.images.length") >= 4
        assert pictures(page) == []
        assert headings(page) == []


def test_prints(request: pytest.FixtureRequest, browser: Browser, report: Path) -> None:
    with opened(browser, report) as (page, heard):
        assert unprinted(page) == []
        assert heard == []


def test_names_are_text(browser: Browser, tmp_path: Path) -> None:
    """Markup in names of columns and segments is read, not obeyed, and shown whole."""
    with opened(browser, written("hostile", tmp_path)) as (page, heard):
        assert page.locator("h1").inner_text() == f"Calibration of {LONG}"
        rows = page.locator("#segments tbody th").evaluate_all("all => all.map(e => e.textContent)")
        assert sorted(rows) == sorted(["all rows", *NAMES])
        assert page.locator("#segments thead th").first.text_content() == MARKUP
        assert page.evaluate("() => document.querySelectorAll('script, [onerror]').length") == 0
        assert noise(page, heard) == []


# --- what the checks find


HEAD = (
    "<!DOCTYPE html><html lang=en><head><meta charset=utf-8><link rel=icon href='data:,'><title>t</title>"
    "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    "<style>a:focus-visible { outline: 3px solid #a60 }</style></head><body><h1>All is well</h1>"
)
CHECKS: dict[str, Callable[[Page, Faults], Faults]] = {
    "noise": noise,
    "overflow": lambda page, _: overflow(page),
    "print": lambda page, _: unprinted(page),
    "contrast": lambda page, _: contrast(page),
    "pictures": lambda page, _: pictures(page),
    "headings": lambda page, _: headings(page),
    "keyboard": lambda page, _: keyboard(page),
}


@pytest.mark.parametrize("name", CHECKS)
def test_checks_are_content(browser: Browser, tmp_path: Path, name: str) -> None:
    path = tmp_path / "good.html"
    path.write_text(HEAD + "<h2>Text</h2><p>Black on white, <a href='#t'>a link</a></p>", encoding="utf-8")
    with opened(browser, path) as (page, heard):
        assert CHECKS[name](page, heard) == []


@pytest.mark.parametrize(
    ("name", "markup"),
    [
        ("noise", "<script>1</script>"),
        ("noise", "<img src='http://127.0.0.1:9/p.png' alt=p>"),
        ("noise", "<link rel=stylesheet href='other.css'>"),
        ("overflow", "<p style='width: 1500px'>wide</p>"),
        ("print", "<p style='width: 4000px; text-align: right'>far right</p>"),
        (
            "print",
            "<div style='width: 9px; overflow: hidden'><p>more than fits</p></div>",
        ),
        ("print", "<details><summary>more</summary><p>hidden</p></details>"),
        ("print", "<style>@media print { p { display: none } }</style><p>screen only</p>"),
        ("contrast", "<p style='color: #777; background: #fff'>4.48</p>"),
        ("contrast", "<p style='color: #fff'>none</p>"),
        ("contrast", "<div style='background: #000'><p style='color: rgba(255, 255, 255, .4)'>3.7</p></div>"),
        ("pictures", "<img src='data:image/png;base64,AAAA' alt=broken>"),
        (
            "pictures",
            "<img width=9 height=9 src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>\">",
        ),
        ("headings", "<h3>two down</h3>"),
        ("headings", "<h1>a second</h1>"),
        ("headings", "<h2></h2>"),
        ("keyboard", "<a href='#a'>a</a><a href='#b' tabindex=1>b</a>"),
        ("keyboard", "<a href='#a' style='outline: none'>a</a>"),
        ("keyboard", "<a href='#a' style='position: absolute; left: -999rem'>a</a>"),
        ("keyboard", "<a href='#a'></a><a href='#b'>b</a>"),
    ],
)
def test_checks_find(browser: Browser, tmp_path: Path, name: str, markup: str) -> None:
    path = tmp_path / "bad.html"
    path.write_text(HEAD + markup, encoding="utf-8")
    with opened(browser, path) as (page, heard):
        assert CHECKS[name](page, heard) != []
