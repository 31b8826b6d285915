"""Answers that are equal once case, articles, punctuation and the writing of numbers are taken away."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction

from calcore.semantic.judges.judge import numbered

__all__ = ["Exact", "normal_form"]

_WHOLE = r"(?:0|[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]*)"
_AMOUNT = rf"{_WHOLE}(?:\.[0-9]+)?|\.[0-9]+"
_NUMBER = re.compile(
    r"(?<![\w.,/])(?P<sign>[-+]?)"
    rf"(?:(?:(?P<units>{_WHOLE}) )?(?P<top>{_WHOLE})/(?P<bottom>[1-9][0-9]*)|(?P<amount>{_AMOUNT}))"
    r"(?![\w/]|[.,][0-9]|-[0-9])"
)
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—―−﹘﹣－", "-") | {"⁄": "/", "∕": "/"})
_SMALL_FRACTION = re.compile("([⁰¹²³⁴-⁹]+)[⁄∕/]([₀-₉]+)")
_RAISED = re.compile("([⁰¹²³⁴-⁹⁺⁻⁼⁽⁾ⁿⁱˣʸ]+)(?![ᵈᵉʰʳˢᵗ])")  # 4ᵗʰ and 2ⁿᵈ are words
_JOINING = "¼-¾⅐-⅞↉₀-₉①-⒛⓪㉑-㉟㊱-㊿"
_KEPT = frozenset("#%&*@/+")
_LONGEST_NUMBER = 1000
_ARTICLES = ("a", "an", "the")


class Exact:
    """A judge without a model: answers are the same if `normal_form` makes them equal.

    It suits short answers, such as names, numbers and choices. Sentences that say the same in other words
    are different to it, so confidence comes out too small for them.

    Examples
    --------
    >>> judge = Exact()
    >>> judge.partition("How many?", ["1,000", "1000.0", "The thousand.", "a thousand"])
    [0, 0, 1, 1]
    >>> judge.grade("Where?", "In Paris", "Paris"), judge.grade("Where?", "paris!", "Paris")
    (0, 1)
    """

    def partition(self, question: str, answers: Sequence[str]) -> list[int]:
        """Equal normal forms have equal numbers, in order of first appearance."""
        return numbered(map(normal_form, answers))

    def grade(self, question: str, answer: str, gold: str) -> int | None:
        """1 if the normal forms of answer and reference are equal, else 0."""
        return int(normal_form(answer) == normal_form(gold))

    def __repr__(self) -> str:
        return "Exact()"


def normal_form(text: str) -> str:
    """What is left of an answer without the differences that do not change its meaning.

    In this order:

    1. Unicode: compatible characters become one (NFKC: full-width letters, ligatures, ½ as 1/2), letters are
       case-folded, dashes and minus signs become ``-``. Accents stay. Raised digits are powers, with a sign
       before them: 10² is ``10^2``. Lowered and circled ones are not joined to a digit beside them.
    2. Numbers become a whole number or a fraction in lowest terms: ``1,000`` and ``1000.0`` are 1000,
       ``0.5``, ``.50`` and ``2/4`` are 1/2, ``1 1/2`` is 3/2. Commas have to be between groups of three
       digits. What is next to letters, or has leading zeros, more points or more slashes, is no number but a
       word: versions, dates, codes.
    3. Punctuation: signs inside and around words go, dashes become spaces; ``# % & * @ / +`` and symbols of
       currency and mathematics stay, for they change what is said, and so do signs between two digits.
    4. Articles: ``the`` and ``an`` before another word, ``a`` at the beginning before another word. "Vitamin
       A" keeps its letter.
    5. Runs of white space become one space.

    An answer of which nothing would be left keeps its signs.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> normal_form("The  Eiffel-Tower!"), normal_form("-1,234.50 m"), normal_form("Vitamin A")
    ('eiffel tower', '-2469/2 m', 'vitamin a')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _spaced(text)).casefold())
    plain = " ".join(folded.translate(_DASHES).split())
    words: list[str] = []
    end = 0
    for found in _NUMBER.finditer(plain):
        number = _number(found)
        if number is not None:
            words += [*_words(plain[end : found.start()]), number]
            end = found.end()
    words += _words(plain[end:])
    left = [word for i, word in enumerate(words) if not _is_article(word, i, len(words))]
    return " ".join(left) or plain


def _unit(found: re.Match[str]) -> str:
    """A unit of area, volume or acceleration with a sign before its power."""
    plain = unicodedata.normalize("NFKC", found[0])
    return f"{plain[:-1]}^{plain[-1]}"


def _spaced(text: str) -> str:
    """Marks and spaces where NFKC would join digits that are apart.

    1½ is one and a half, not eleven halves; 10² is 10^2, not 102; 101₂ is not 1012; ¹⁄₂ is a half.

    >>> _spaced("1½ 10² H₂O 101₂ 1¹⁄₂ 4ᵗʰ 10⁻³ ㎢")
    '1 ½ 10^² H₂O 101 ₂ 1 1/2  4ᵗʰ 10^⁻³ km^2'
    """
    if text.isascii():
        return text
    text = _SMALL_FRACTION.sub(lambda found: unicodedata.normalize("NFKC", f" {found[1]}/{found[2]} "), text)
    text = re.sub("[㎟-㎦㎨㎯]", _unit, text)
    text = _RAISED.sub(r"^\1", text)
    text = re.sub(rf"(?<=\d)(?=[{_JOINING}])", " ", text)
    return re.sub(rf"(?<=[{_JOINING}])(?=\d)", " ", text)


def _number(found: re.Match[str]) -> str | None:
    """A number in lowest terms; None if it is too long to be one."""
    if found.end() - found.start() > _LONGEST_NUMBER:
        return None
    part = {name: (text or "").replace(",", "") for name, text in found.groupdict().items()}
    if part["amount"]:
        value = Fraction(part["amount"])
    else:
        value = Fraction(int(part["top"]), int(part["bottom"])) + int(part["units"] or 0)
    return str(-value if part["sign"] == "-" else value)


def _words(text: str) -> list[str]:
    return re.sub(r"(?<![0-9])[^\w\s]|[^\w\s](?![0-9])|-|[\x00-\x1f_]", _sign, text).split()


def _sign(found: re.Match[str]) -> str:
    character = found[0]
    if character == "-":
        return " "
    category = unicodedata.category(character)
    if character in _KEPT or category[0] not in "PC":
        return character
    return " " if category == "Cc" else ""


def _is_article(word: str, place: int, n_words: int) -> bool:
    return word in _ARTICLES and place + 1 < n_words and (word != "a" or place == 0)
