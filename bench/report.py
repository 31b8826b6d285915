"""Saved results as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bench import record

Content = dict[str, Any]


def report(parts: Iterable[str], quick: bool) -> str:
    """One section per part: targets with pass or fail, then what was measured."""
    sections = []
    for part in parts:
        content = record.read(part, quick)
        if content is None:
            sections.append(f"## {part}\n\nNot measured yet: `python -m bench {part}`.")
            continue
        lines = [f"## {part}", "", _about(content)]
        if content["checks"]:
            lines += ["", *_checks(content["checks"])]
        sections.append("\n".join([*lines, "", *_BODIES[part](content)]))
    return "\n\n".join(sections)


def failed(parts: Iterable[str], quick: bool) -> list[str]:
    """Names of the targets that were missed."""
    contents = [record.read(part, quick) for part in parts]
    return [
        check["name"] for content in contents if content for check in content["checks"] if not check["passed"]
    ]


def _about(content: Content) -> str:
    machine, load = content["machine"], content["load"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB; "
        f"Python {machine['python']}, {packages}. "
        f"{content['mode'].capitalize()} run; load {load['before']} before, {load['after']} after."
    )


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    align = ["---", *["---:"] * (len(head) - 1)]
    return ["| " + " | ".join(cells) + " |" for cells in (head, align, *rows)]


def _number(value: float) -> str:
    return f"{value:.4g}"


def _checks(checks: list[Content]) -> list[str]:
    return _table(
        ["target", "measured", "limit", ""],
        (
            [
                check["name"],
                f"{_number(check['value'])} {check['unit']}".strip(),
                f"{'≥' if check['rule'] == '>=' else '≤'} {_number(check['limit'])}",
                "reached" if check["passed"] else "**missed**",
            ]
            for check in checks
        ),
    )


def _tightness(content: Content) -> list[str]:
    def cell(entry: Content, end: str = "upper") -> str:
        value, reference = entry[f"{end}_sorted"], entry[f"{end}_reference"]
        if reference is None:
            return _number(value)
        mark = "" if reference["reached"] else " ~" if reference["within_chance"] else " **!**"
        return f"{_number(value)} ({_number(reference['value'])}){mark}"

    sizes = sorted({entry["n"] for entry in content["table"]})
    cases = list(dict.fromkeys(entry["case"] for entry in content["table"]))
    by_place = {(entry["case"], entry["n"]): entry for entry in content["table"]}
    heads = [f"{n:.0e}".replace("e+0", "e") for n in sizes]
    seeds = len(content["seeds"])
    lines = [
        f"Upper ends, one-sided at δ = {content['delta']}, medians of {seeds} samples (in brackets the "
        "reference; ~ worse, but within two standard errors; **!** worse):",
        "",
        *_table(
            ["η; scores", "CE", *heads],
            (
                [case, _number(by_place[case, sizes[0]]["true"]), *(cell(by_place[case, n]) for n in sizes)]
                for case in cases
            ),
        ),
        "",
        "Lower ends:",
        "",
        *_table(
            ["η; scores", "CE", *heads],
            (
                [
                    case,
                    _number(by_place[case, sizes[0]]["true"]),
                    *(cell(by_place[case, n], "lower") for n in sizes),
                ]
                for case in cases
                if by_place[case, sizes[0]]["true"] > 0.0
            ),
        ),
        "",
        "Upper end through cells, divided by that from sorted scores (medians; worst sample):",
        "",
        *_table(
            ["η; scores", *heads],
            (
                [
                    case,
                    *("{median:.4f}; {worst:.3f}".format(**by_place[case, n]["cells_cost"]) for n in sizes),
                ]
                for case in cases
            ),
        ),
    ]
    lost = [
        f"{end} end of {entry['case']} at {entry['n']:,} rows"
        for end in ("upper", "lower")
        for entry in content["table"]
        if entry[f"{end}_reference"] is not None and not entry[f"{end}_reference"]["within_chance"]
    ]
    lines += ["", f"Lost to the reference: {'; '.join(lost) or 'none'}."]
    missed = sum(entry["n_missed"] for entry in content["table"])
    lines += [
        "",
        f"Ends on the wrong side of the truth, in all {len(content['table']) * seeds * 6} bounds: {missed}.",
    ]
    return lines


def _times(rows: list[Content], other: str | None = None) -> list[str]:
    head = ["", "ms", *([f"× {other}"] if other else []), "cores"]
    return _table(
        head,
        (
            [
                row["task"],
                f"{row['seconds'] * 1e3:.1f}",
                *([f"{row['ratio'][other]:.2f}"] if other else []),
                f"{row['cores_used']:.2f}",
            ]
            for row in rows
        ),
    )


def _tasks(entry: Content) -> list[str]:
    return [name for name in entry if name not in ("n", "others")]


def _speed(content: Content) -> list[str]:
    sort, total = "np.sort of the scores", "sum of scores and labels"
    others = max(row["others_used"] for row in content["main"])
    growth = content["growth"]
    return [
        f"{content['n']:,} rows, medians; ratios to the sort and to the sum in the same round; others used "
        f"{others:.2f} cores meanwhile:",
        "",
        *_table(
            ["", "ms", "× np.sort", "× sum", "cores"],
            (
                [
                    row["task"],
                    f"{row['seconds'] * 1e3:.1f}",
                    f"{row['ratio'][sort]:.2f}",
                    f"{row['ratio'][total]:.1f}",
                    f"{row['cores_used']:.2f}",
                ]
                for row in content["main"]
            ),
        ),
        "",
        "Other inputs, `certify` through cells:",
        "",
        *_times(content["inputs"], sort),
        "",
        "Nanoseconds per row by number of rows:",
        "",
        *_table(
            ["rows", *_tasks(growth[0])],
            (
                [f"{entry['n']:,}", *(f"{entry[name]['ns_per_row']:.2f}" for name in _tasks(entry))]
                for entry in growth
            ),
        ),
        "",
        "Peak resident memory above that of the columns:",
        "",
        *_table(["", "MiB"], ([row["task"], f"{row['extra_mib']:.1f}"] for row in content["memory"])),
    ]


def _process(content: Content) -> list[str]:
    return _table(
        ["process", "s", "processor s", "peak MiB", "cores of others"],
        (
            [
                row["task"],
                f"{row['seconds']:.2f}",
                f"{row['cpu_seconds']:.2f}",
                f"{row['peak_mib']:.0f}",
                f"{row['others_used']:.2f}",
            ]
            for row in content["rows"] + content["big"]
        ),
    )


def _peers(content: Content) -> list[str]:
    other = "scikit-learn calibration_curve, 10 bins"
    return [
        f"{content['n']:,} rows; asserted first: {content['agreed']}.",
        "",
        *_times(content["rows"], other),
    ]


def _functions(content: Content) -> list[str]:
    sizes = sorted({row["n"] for row in content["rows"]})
    tasks = list(dict.fromkeys(row["task"] for row in content["rows"]))
    found = {(row["task"], row["n"]): row["seconds"] for row in content["rows"]}
    return [
        "Median milliseconds by number of rows:",
        "",
        *_table(
            ["", *(f"{n:.0e}".replace("e+0", "e") for n in sizes)],
            ([task.replace("_", " "), *(f"{found[task, n] * 1e3:.3g}" for n in sizes)] for task in tasks),
        ),
    ]


_BODIES: dict[str, Callable[[Content], list[str]]] = {
    "tightness": _tightness,
    "speed": _speed,
    "process": _process,
    "peers": _peers,
    "functions": _functions,
}
