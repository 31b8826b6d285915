"""Messages of the Python interface in words of the command line: columns, options and data rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from calcore.files.paths import shown

__all__ = ["in_words_of_classes", "in_words_of_the_command"]


def in_words_of_the_command(
    message: str, label: str | None = None, score: str | None = None, start: int = 0
) -> str:
    """A message of the Python interface with columns, options and data rows for arguments and indices.

    >>> in_words_of_the_command(
    ...     "y_prob must lie in [0, 1]; got 1.2 at index 6 (and 3 more)", "late", "p", 100
    ... )
    'column p must lie in [0, 1]; got 1.2 at data row 107 (and at least 3 more)'
    >>> in_words_of_the_command("delta must lie strictly between 0 and 1; got 95", "late", "p")
    '--delta must lie strictly between 0 and 1; got 95'
    """
    message = message.replace(
        "are the arguments swapped? The order is (y_true, y_prob)", "are --label and --score swapped?"
    )
    message = message.replace("percent; pass y_prob / 100", "percent; divide the column by 100")
    message = re.sub(
        r"logits; pass the sigmoid of them, 1 / \(1 \+ np\.exp\(-\w+\)\)",
        "logits; write their sigmoid, 1 / (1 + exp(-x))",
        message,
    )
    message = re.sub(r"[;:] convert it, e\.g\. with \.astype\(float\)", "", message)
    message = re.sub(r"\bindex (\d+)", lambda match: f"data row {int(match[1]) + start + 1}", message)
    message = re.sub(r"\(and (\d+ more)\)", r"(and at least \1)", message)
    message = re.sub(r"\bpass pos_label=", "pass --pos-label ", message)
    message = re.sub(r"\bgrid='(\w+)'", r"--grid \1", message)
    message = re.sub(r"\bmethod='([\w-]+)'", r"--method \1", message)
    message = re.sub(r"\b(beside|or|uses) (variation|lipschitz|perturbed)\b", r"\1 --\2", message)
    message = re.sub(r"\bn_cells=(\d+)", r"--cells \1", message)
    message = re.sub(rf"^({'|'.join(_OPTIONS)})\b", lambda match: "--" + match[1].replace("_", "-"), message)
    message = re.sub(r"^y_true\b", f"column {shown(label or 'y_true')}", message)
    message = re.sub(r"^y_prob\b", f"column {shown(score or 'y_prob')}", message)
    message = re.sub(r"\by_true\b", shown(label or "y_true"), message)
    return re.sub(r"\by_prob\b", shown(score or "y_prob"), message)


_OPTIONS = (
    "delta",
    "side",
    "method",
    "variation",
    "lipschitz",
    "perturbed",
    "groups",
    "pos_label",
    "n_folds",
    "target",
    "ce",
    "base_rate",
    "max_ce",
)


def in_words_of_classes(message: str, columns: Sequence[str], start: int) -> str:
    """A message about a matrix with columns and data rows for its indices.

    >>> in_words_of_classes("P must lie in [0, 1]; got 1.2 at row 6, column 1", ["a", "b"], 100)
    'probabilities must lie in [0, 1]; got 1.2 at data row 107 of column b'
    """

    def place(match: re.Match[str]) -> str:
        return f"data row {int(match[1]) + start + 1} of column {shown(columns[int(match[2])])}"

    message = re.sub(r"\brow (\d+), column (\d+)", place, message)
    message = re.sub(r"; row (\d+) sums", lambda m: f"; data row {int(m[1]) + start + 1} sums", message)
    message = message.replace("pass P / 100", "divide the columns by 100")
    message = message.replace("pass np.exp(P)", "take their exponentials")
    message = message.replace(
        "these look like logits; pass their softmax", "these look like logits, not their softmax"
    )
    message = message.replace("pass probabilities of all classes", "name the columns of all classes")
    message = re.sub(r"pass labels=range\(1, \d+\)", _numbers_from_1(len(columns)), message)
    message = message.replace("the columns of P", "numbers of the columns of --classes")
    message = message.replace("labels of columns of P", "labels of columns of --classes")
    return re.sub(r"^P\b", "probabilities", message)


def _numbers_from_1(k: int) -> str:
    numbers = [str(j) for j in range(1, k + 1)]
    return "give --class-labels " + ",".join(numbers if k <= 4 else [*numbers[:3], "...", numbers[-1]])
