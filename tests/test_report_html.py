"""The page of an evaluation: whole, closed in itself, readable without a mouse, and the same every time."""

from __future__ import annotations

import base64
import itertools
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import calcore
from calcore.report.page import html

SEED = 20240614
VOID = {"meta", "link", "img", "br", "hr", "input"}
SECTIONS = ["verdict", "data", "scores", "bins", "pictures", "clinical", "sensitivity", "methods"]


class Page(HTMLParser):
    """A page read back: tags that match, and what is in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def evaluated(n: int = 400, **options: Any) -> calcore.Evaluation:
    rng = np.random.default_rng(SEED)
    scores = rng.random(n)
    labels = (rng.random(n) < scores**2).astype(np.int64)
    return calcore.evaluate(labels, scores, n_resamples=99, **options)


@pytest.fixture(scope="module")
def text() -> str:
    found = evaluated(by=["<b>north</b>", "south"] * 200, name="p & <script>alert(1)</script>")
    return html(found)


def test_is_a_whole_page(text: str) -> None:
    page = Page(text)
    assert text.startswith("<!DOCTYPE html>\n")
    assert page.of("html") == [{"lang": "en"}]
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert [name for name in ids if name in SECTIONS] == SECTIONS
    assert "segments" in ids


def test_asks_for_nothing(text: str) -> None:
    page = Page(text)
    for _, attributes in page.tags:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), value
        assert not any(name.startswith("on") for name in attributes)
    assert "@import" not in text
    assert "url(" not in text
    assert not page.of("script")
    policy = page.of("meta")[2]
    assert policy["http-equiv"] == "Content-Security-Policy"
    assert (policy["content"] or "").startswith("default-src 'none'")


def test_pictures_are_inside_and_ask_for_nothing(text: str) -> None:
    images = Page(text).of("img")
    assert len(images) == 5
    for image in images:
        assert image["alt"]
        kind, _, content = (image["src"] or "").partition(",")
        assert kind == "data:image/svg+xml;base64"
        root = ElementTree.fromstring(base64.b64decode(content))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        for element in root.iter():
            for name, value in element.attrib.items():
                if name.endswith("href"):
                    assert value.startswith("#")
                assert "url(h" not in value
            assert not element.tag.endswith(("script", "image", "foreignObject"))


def test_names_are_escaped(text: str) -> None:
    assert "<script" not in text
    assert "<b>" not in text
    page = Page(text)
    assert "p & <script>alert(1)</script>" in page.text
    assert "<b>north</b>" in page.text


def test_works_with_the_keyboard(text: str) -> None:
    page = Page(text)
    ids = {attributes.get("id") for _, attributes in page.tags}
    targets = [(attributes["href"] or "")[1:] for attributes in page.of("a")]
    assert set(targets) <= ids
    assert targets[0] == "verdict"  # the first stop skips what comes before
    for attributes in page.of("div"):
        if attributes.get("class") == "wide":  # what scrolls can be reached
            assert attributes["tabindex"] == "0"
            assert attributes["aria-label"]
    assert len(page.of("caption")) == len(page.of("table"))
    assert all(attributes.get("scope") in ("col", "row") for attributes in page.of("th"))
    assert "@media print" in text
    assert ":focus-visible" in text


def test_says_the_numbers() -> None:
    found = evaluated(population="trips of <May>", command="calcore report x.csv")
    shown = Page(html(found)).text
    for words in (found.verdict, found.methods, found.population, found.command, *found.warnings):
        assert words in shown
    for metric in ("brier", "ece@10", "ece@15", "ece@20"):
        assert f"{found.comparison.estimate('model', metric).estimate:.4g}" in shown
    assert f"{found.diagram.ece:.4g}" in shown
    assert found.clinical is not None
    assert f"{found.clinical.slope:.4g}" in shown
    assert f"calcore {calcore.__version__}" in shown
    for number in found.sensitivity.values():
        assert number.winner in shown


def test_says_which_event_beside_every_number() -> None:
    for event, words in (("positive", "the label is positive"), ("top label", "the first choice is right")):
        page = html(evaluated(60, event=event))
        rows = re.findall(r'<td class="number">.*?</tr>', page)
        assert len(rows) == 20
        assert all(f'<td class="event">{words}</td>' in row for row in rows)
        pictures = re.findall(r"<figcaption>.*?</figcaption>", page)
        assert all(f"Event: {words}." in caption for caption in pictures)


@pytest.mark.parametrize(
    ("labels", "scores", "words"),
    [
        ([0, 1, 1], [0.2, 0.5, 0.7], "Too few rows"),
        ([1], [0.5], "no row has a negative label"),
        ([0] * 50, [0.1] * 50, "all labels are equal"),
        ([0, 1] * 20, [0.0, 1.0] * 20, "exactly 0 or 1"),
        ([1, 0] * 20, [0.0, 1.0] * 20, "infinite"),
        ([0, 1] * 20, [0.3, 0.7] * 20, "unbounded"),
    ],
)
def test_degenerate_rows(labels: list[int], scores: list[float], words: str) -> None:
    page = Page(html(calcore.evaluate(labels, scores, n_resamples=99)))
    assert words in page.text
    assert "nan" not in page.text.lower().split()
    assert "inf" not in page.text.lower().split()


def test_page_of_several_models() -> None:
    rng = np.random.default_rng(SEED)
    scores = rng.random(400)
    labels = rng.random(400) < scores
    models = {"<i>": scores, "b & c": scores**2, "d": scores**3}
    found = calcore.evaluate_models(labels, models, by=["x", "y"] * 200, n_resamples=99)
    text = html(found)
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for i in (1, 2, 3):
        assert [name for name in ids if name in {f"m{i}-{each}" for each in SECTIONS}] == [
            f"m{i}-{each}" for each in SECTIONS
        ]
    for attributes in page.of("a"):
        assert (attributes["href"] or "").removeprefix("#") in ids
    assert "<i>" not in text
    assert found.verdict in page.text
    for (a, b), difference in found.certified:
        assert f"Brier score: {a} minus {b}" in page.text
        assert difference.delta == 0.05 / 6
    levels = [int(name[1]) for name, _ in page.tags if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_page_of_several_classes() -> None:
    rng = np.random.default_rng(SEED)
    k = 45
    P = rng.dirichlet(np.ones(k), 300)
    codes = rng.integers(0, k, 300)
    names = [f"<{j}>" for j in range(k)]
    found = calcore.evaluate(np.array(names)[codes], P, labels=names, n_resamples=99)
    text = html(found)
    page = Page(text)
    assert "<3>" not in text
    assert "the 40 with the largest lower ends of 45 classes are shown" in page.text
    assert len(re.findall(r'<th scope="row">&lt;\d+&gt;</th>', text)) == 40
    for words in ("a row is of the class, for each class", "the class, by the whole vector"):
        assert f'<td class="event">{words}</td>' in text
    assert len(page.of("img")) == 6
    assert "300 different vectors in 300 rows: too few rows of each" in page.text


def test_is_the_same_every_time() -> None:
    found = evaluated(80)
    assert html(found) == html(found)


def test_draws_without_pyplot() -> None:
    code = (
        "import sys; from calcore import evaluate; from calcore.report.page import html\n"
        "html(evaluate([0, 1], [.2, .7], n_resamples=99)); print('matplotlib.pyplot' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert (out.stdout, out.stderr) == ("False\n", "")


def test_needs_an_evaluation() -> None:
    with pytest.raises(TypeError, match=r"^evaluation must be an Evaluation; got dict"):
        html({})  # type: ignore[arg-type]


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_says_what_is_missing(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = evaluated(20)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match="pip install 'calcore-calibration"):
        html(found)
