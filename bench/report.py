"""Saved results as Markdown."""

from __future__ import annotations

import math
import statistics
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
            for row in content["rows"] + content.get("big", [])
        ),
    )


def _peers(content: Content) -> list[str]:
    other = "scikit-learn calibration_curve, 10 bins"
    return [
        f"{content['n']:,} rows; asserted first: {content['agreed']}.",
        "",
        *_times(content["rows"], other),
    ]


def _frames(content: Content) -> list[str]:
    rows = (
        [row["task"], row["kind"], _number(row["millions"]), f"{row['mib']:.0f}", f"{row['ratio']:.2f}"]
        for row in content["rows"]
    )
    head = [f"{content['n']:,} rows of a Parquet file", "by", "M rows/s", "MiB", "time by PyArrow's batches"]
    return _table(head, rows)


def _metrics(content: Content) -> list[str]:
    return [
        f"{content['n']:,} rows, or as named:",
        "",
        *_times(content["own"], "np.sort of 10^7 uniform scores"),
        "",
        "Resampling:",
        "",
        *_table(
            ["", "seconds", "cores used"],
            ([row["task"], f"{row['seconds']:.3g}", str(row["cores_used"])] for row in content["resampling"]),
        ),
        "",
        "Other libraries on the same rows, values asserted equal first:",
        "",
        *_table(
            ["", "rows", "library", "calcore, ms", "library, ms", "ratio"],
            (
                [
                    row["task"],
                    f"{row['n']:,}",
                    row["peer"],
                    f"{row['calcore'] * 1e3:.4g}",
                    f"{row['seconds'] * 1e3:.4g}",
                    f"{row['ratio']:.3g}",
                ]
                for row in content["peers"]
            ),
        ),
    ]


def _semantic(content: Content) -> list[str]:
    return [
        "10^5 questions of 50 answers each, 10 splits:",
        "",
        *_table(
            ["", "seconds", "cores used"],
            ([row["task"], f"{row['seconds']:.3g}", str(row["cores_used"])] for row in content["own"]),
        ),
        "",
        "Errors over ten bins of the first N of 100 answers, and of the true shares (ECE*):",
        "",
        *_table(
            ["population", "N", "ECE*", "Sem1-ECE", "exact", "Sem2-ECE", "excess of Sem1", "of Sem2"],
            (
                [
                    row["population"],
                    str(row["answers"]),
                    *(f"{row[name]:.4f}" for name in ("star", "sem1", "sem1_exact", "sem2")),
                    *(f"{row[name]:+.4f}" for name in ("sem1_excess", "sem2_excess")),
                ]
                for row in content["sweep"]
            ),
        ),
        "",
        "How often 95 % intervals hold the error of the population, and how often a warning is given:",
        "",
        *_table(
            ["population", "N", "questions", "Sem1", "warned", "Sem2", "warned"],
            (
                [
                    row["population"],
                    str(row["answers"]),
                    f"{row['n']:,}",
                    *(
                        f"{100 * row[name][what]:.0f} %"
                        for name in ("sem1", "sem2")
                        for what in ("held", "warned")
                    ),
                ]
                for row in content["coverage"]
            ),
        ),
    ]


def _kernels(content: Content) -> list[str]:
    other = "np.sort of as many scores"
    lines = [
        f"{content['n']:,} numbers; peers that could be installed: {', '.join(content['peers']) or 'none'}.",
        "",
    ]
    for entry in content["signals"]:
        lines += [f"{entry['signal']}, lam = {entry['lam']:.4g}:", "", *_times(entry["rows"], other), ""]
        lines += [f"Left out: {peer} ({why})." for peer, why in entry["left_out"].items()]
    return [*lines, "Others:", "", *_times(content["own"], other)]


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


def _reproduce(content: Content) -> list[str]:
    populations, table = content["populations"], content["table"]
    methods = list(dict.fromkeys(entry["method"] for entry in content["slopes"]))
    slopes = {(entry["population"], entry["method"]): entry for entry in content["slopes"]}
    flights, timed, published = content["flights"], content["timed"], content["published"]
    with_perturbation = [name for name in content["perturbed"][0] if name in flights[0] and name != "n"]
    lines = [
        "Published are Ciosek et al. (2025), arXiv 2512.13872. Their functions and data are not available: "
        "signs and orders are compared, nothing is reproduced in the strict sense.",
        "",
        "Populations; scores are uniform on an interval:",
        "",
        *_table(
            ["", "η(s)", "scores", "V", "L", "M", "CE"],
            (
                [
                    p["name"],
                    p["formula"],
                    "[{:.4g}, {:.4g}]".format(*p["scores"]),
                    *(_number(p[name]) for name in ("variation", "lipschitz", "curvature")),
                    f"{p['error']:.4f}",
                ]
                for p in populations
            ),
        ),
        "",
        "Slopes of ln(mean bound − CE) against ln n, least squares, by population:",
        "",
        *_three([_slope(method, populations, slopes, published["slopes"]) for method in methods]),
        "",
        "The same one by one, with 95 % t intervals, which are about how straight the line is:",
        "",
        *_table(
            ["", *methods],
            ([p["name"], *(_interval(slopes[p["name"], method]) for method in methods)] for p in populations),
        ),
        "",
        f"Perturbed flights, {flights[0]['n']:,} rows, means of {flights[0]['draws']} draws with standard "
        "errors:",
        "",
        *_three(_losses(flights, published)),
        "",
        *_table(
            ["h", "loss of AUROC", *with_perturbation],
            (
                [
                    f"2^{math.log2(entry['width']):.0f}",
                    *(_with_error(entry[name]) for name in ("loss", *with_perturbation)),
                ]
                for entry in flights
            ),
        ),
        "",
        *_headline(content, with_perturbation, published),
        "",
        f"Time of {timed['repetitions']} repetitions of `{timed['method']}` at {timed['n']:,} rows:",
        "",
        *_three(
            [
                [
                    "seconds",
                    f"{published['seconds']:.0f} at {published['rows']:,} rows",
                    f"{timed['seconds']:.0f}",
                    f"other machine; {timed['processes']} processes, each sample is drawn and sorted once, "
                    "then linear time",
                ]
            ]
        ),
    ]
    for p in populations:
        lines += _bounds_by_rows(p, table, methods, content["n_bins"])
    for p in content["classifiers"]:
        lines += _bounds_by_rows(p, content["perturbed"], with_perturbation, content["n_bins"])
    return lines


def _bounds_by_rows(p: Content, table: list[Content], methods: list[str], n_bins: int) -> list[str]:
    part = {entry["n"]: entry for entry in table if entry["population"] == p["name"]}
    errors = max(entry[method]["standard_error"] for entry in part.values() for method in methods)
    return [
        "",
        f"Upper bounds, {p['name']}, CE = {p['error']:.4g} (means; standard errors below {errors:.1g}):",
        "",
        *_table(
            ["rows", "samples", *methods, f"plain {n_bins}-bin ECE"],
            (
                [
                    f"{n:,}",
                    str(entry["repetitions"]),
                    *(f"{entry[method]['mean']:.4f}" for method in (*methods, "ece")),
                ]
                for n, entry in part.items()
            ),
        ),
    ]


def _three(rows: list[list[str]]) -> list[str]:
    """Beside what was published."""
    return ["| | published | ours | why different |", "| --- | --- | --- | --- |"] + [
        "| " + " | ".join(row) + " |" for row in rows
    ]


_WHY = {
    "tv": "other functions; √(2λV) with λ ∝ n^-½ falls as n^-¼, and decides",
    "nw": "no split into folds; L and M both used, where bias M b² against noise (n b)^-½ falls as n^-⅖, "
    "and the deviation as n^-½",
    "nw-folds": "other functions; as `nw`, with a deviation that the smaller test part makes larger",
    "buckets": "other functions; bias L/m against a union over m bins falls as n^-⅓",
    "plugin": "not published: bins averaged, no union over them",
    "inversion": "not published: the noise of the bins taken out",
    "auto": "not published: the better of `plugin` and `inversion`",
    "nw, L": "without M; bias L b against noise (n b)^-½ falls as n^-⅓",
    "auto, L": "not published: `plugin` with L in place of V",
}


def _slope(
    method: str,
    populations: list[Content],
    slopes: dict[tuple[str, str], Content],
    all_published: dict[str, list[float]],
) -> list[str]:
    found = [value for p in populations if (value := slopes[p["name"], method]["slope"]) is not None]
    published = all_published.get(method.removesuffix("-folds"))
    if not found:
        return [method, "", "too few sizes", ""]
    low, high = min(found), max(found)
    return [
        method,
        "–" if published is None else "{:.3f} to {:.3f}".format(*published),
        f"{low:.3f} to {high:.3f}",
        (f"{_compared(low, high, *published)}; " if published else "") + _WHY[method],
    ]


def _compared(low: float, high: float, published_low: float, published_high: float) -> str:
    if high >= 0.0:
        return "**other sign**"
    if published_low <= low and high <= published_high:
        return "inside"
    if high < published_low:
        return "steeper"
    return "flatter" if low > published_high else "overlaps"


def _interval(entry: Content) -> str:
    if entry["slope"] is None:
        return f"– ({entry['points']} sizes)"
    return f"{entry['slope']:.3f} [{entry['low']:.3f}, {entry['high']:.3f}]"


def _with_error(entry: Content) -> str:
    return f"{entry['mean']:.5f} ± {entry['standard_error']:.5f}"


def _losses(flights: list[Content], published: Content) -> list[list[str]]:
    limits = {entry["width"]: entry["below"] for entry in published["losses"]}
    return [
        [
            f"loss of AUROC, h = 2^{math.log2(entry['width']):.0f}",
            f"< {limits[entry['width']]}" if entry["width"] in limits else "–",
            _with_error(entry["loss"]),
            f"other data: AUROC {entry['auroc']:.3f}, standard deviation of the scores "
            f"{entry['score_deviation']:.3f}, of the perturbation {math.pi / 2 * entry['width']:.3f}",
        ]
        for entry in flights
    ]


def _headline(content: Content, methods: list[str], published: Content) -> list[str]:
    """The bound at the published number of rows, and the rows at which the published bound is reached."""
    p = content["classifiers"][0]
    part = [entry for entry in content["perturbed"] if entry["population"] == p["name"]]
    level, last = published["upper"], part[-1]

    def reached(method: str) -> str:
        n = first_below(part, method, level)
        return f"not by {last['n']:,}" if n is None else f"{n:,}"

    return [
        f"Scores perturbed with h = 2^{math.log2(p['width']):.0f}, {p['name']}, CE = {p['error']:.4g}. "
        f"Published: about {level} at {published['rows']:,} rows (other data). Ours, mean bound at "
        f"{last['n']:,} rows, and the first of the sizes that were run at which it is at most {level}:",
        "",
        *_table(
            ["", *methods],
            [
                [f"at {last['n']:,} rows", *(_with_error(last[method]) for method in methods)],
                [f"rows for {level}", *(reached(method) for method in methods)],
            ],
        ),
    ]


def first_below(entries: list[Content], method: str, level: float) -> int | None:
    """The least number of rows, of those that were run, at which the mean bound is at most `level`."""
    return min((entry["n"] for entry in entries if entry[method]["mean"] <= level), default=None)


def _perturbations(content: Content) -> list[str]:
    def pair(entry: Content, name: str) -> str:
        return " / ".join(f"{value:.3g}" for value in entry[name])

    return [
        "Bounds of |η′| / |η″| for any classifier (closed forms) and the largest values over all η₀ for "
        "classifiers with uniform scores and with those of the flights (quadrature). Loss of AUROC, and "
        f"the certificate `nw` with the bounds for any classifier, on the flights ({content['n']:,} rows, "
        f"means of {content['rows'][0]['draws']} draws):",
        "",
        *_table(
            ["h; law", "sd", "any", "uniform", "flights", "loss of AUROC", "`nw`"],
            (
                [
                    f"2^{math.log2(entry['width']):.0f}; {entry['law']}",
                    f"{entry['deviation']:.4f}",
                    *(pair(entry, name) for name in ("any", "uniform", "flights")),
                    f"{entry['loss']:.5f} ± {entry['loss_error']:.5f}",
                    f"{entry['upper']:.4f} ± {entry['upper_error']:.4f}",
                ]
                for entry in content["rows"]
            ),
        ),
    ]


def _rankings(content: Content) -> list[str]:
    tasks, sizes = content["tasks"], content["sizes"]
    lines = [
        "Published is Lu, Wu, Hartline & Hu (2025), arXiv 2510.06388, on networks for CIFAR-100. They are "
        "not available, and neither were the paper's tables: signs are compared with its abstract.",
        "",
        f"{len(content['models'])} models, each at steps {', '.join(map(str, content['steps']))} of its "
        f"training on {sizes['train']:,} rows, temperature from {sizes['valid']:,} others, "
        f"{sizes['test']:,} test rows:",
        "",
        *_table(
            ["task", "classes", "in the test rows", "below 10 training rows", "errors, last step"],
            (
                [
                    task,
                    str(about["classes"]),
                    str(about["classes_in_test"]),
                    str(about["classes_below_10_training_rows"]),
                    _last_errors(content, task),
                ]
                for task, about in tasks.items()
            ),
        ),
        "",
        f"Spearman correlations with bootstrap intervals ({100 * content['level']:g} %, {content['draws']:,} "
        "draws over models; the test rows stay the same). Within: over the steps of a model, mean of the "
        "models; final: over the models at their last step; pooled: over all.",
        "",
        *_three(_published_rankings(content)),
    ]
    lines += [
        "",
        "n times truthful error, over its proper loss; medians of all steps of all models. It is 1, in "
        "expectation, for calibrated models: then the loss decides the ranking at any number of bins. What "
        "exceeds 1 is miscalibration that temperature scaling has left, as far as the bins see it.",
        "",
        *_table(
            ["task", "metric", *(f"{m} bins" for m in content["bins"])],
            (
                [task, metric, *(f"{value:.2f}" for value in _left_over(content, task, metric))]
                for task in tasks
                for metric in _LOSS_OF
            ),
        ),
    ]
    for task, found in content["correlations"].items():
        for other in dict.fromkeys(entry["with"] for entry in found["against"]):
            part = [entry for entry in found["against"] if entry["with"] == other]
            lines += ["", f"{task}: metric and {'classification error' if other == 'error' else other}:", ""]
            lines += _correlations(part, lambda entry: "" if entry["bins"] is None else f"{entry['bins']}")
        lines += ["", f"{task}: metric with some bins and with others:", ""]
        lines += _correlations(found["between"], lambda entry: "{}, {}".format(*entry["bins"]))
        lines += ["", f"{task}: the same, truthful less other:", ""]
        gains = [{"metric": f"{e['truthful']} – {e['other']}"} | e for e in found["gains"]]
        lines += _correlations(gains, lambda entry: "{}, {}".format(*entry["bins"]))
    sweep = content["sweep"]
    lines += [
        "",
        f"Bin sweep: {sweep['resamples']} resamples of {sweep['n']:,} rows, {sweep['bin_counts'][0]} to "
        f"{sweep['bin_counts'][-1]} bins; parameters and seed fixed before the first run.",
        "",
        *_table(
            ["model", "scores", "T", "true error", *(f"mean ECE, {m} bins" for m in _SWEPT)],
            (
                [
                    model["name"],
                    f"Beta({model['a']:g}, {model['b']:g})",
                    f"{model['temperature']:g}",
                    f"{model['error']:.4f}",
                    *(f"{means[sweep['bin_counts'].index(m)]:.4f}" for m in _SWEPT),
                ]
                for model, means in zip(sweep["models"], sweep["metrics"]["ece"]["means"], strict=True)
            ),
        ),
        "",
        "Flips: parts of the resamples where the ranking of two models at one number of bins is not that at "
        "another. Mean over all pairs of numbers; the worst pair; parts where any number differs from the "
        "first.",
        "",
        *_table(
            ["metric", "models", "mean", "worst", "at", "any"],
            (
                [
                    _SWEEP_NAMES[metric],
                    pair["pair"],
                    f"{pair['flips']:.3f}",
                    f"{pair['worst']:.3f}",
                    "{}, {}".format(*pair["worst_at"]),
                    f"{pair['any']:.3f}",
                ]
                for metric, found in sweep["metrics"].items()
                for pair in found["pairs"]
            ),
        ),
    ]
    return [*lines, "", *_mechanism(content["mechanism"])]


_SWEPT = (5, 10, 20, 50)
_LOSS_OF = {"classwise LinCE": "Brier/k", "ConfCE": "confidence loss"}
_SWEEP_NAMES = {"ece": "ECE", "lin_ce": "LinCE"}


def _last_errors(content: Content, task: str) -> str:
    last = [
        entry["error"]
        for entry in content["checkpoints"]
        if entry["task"] == task and entry["step"] == content["steps"][-1]
    ]
    return f"{min(last):.3f} to {max(last):.3f}"


def _left_over(content: Content, task: str, metric: str) -> list[float]:
    """By number of bins: n times the error over its proper loss, median."""
    n = content["sizes"]["test"]
    ratios = [
        [n * value / entry["losses"][_LOSS_OF[metric]] for value in entry["metrics"][metric]]
        for entry in content["checkpoints"]
        if entry["task"] == task
    ]
    return [statistics.median(column) for column in zip(*ratios, strict=True)]


def _correlations(entries: list[Content], bins: Callable[[Content], str]) -> list[str]:
    ways = ("within", "final", "pooled")
    return _table(
        ["", "bins", *ways],
        ([entry["metric"], bins(entry), *(_with_interval(entry[way]) for way in ways)] for entry in entries),
    )


def _with_interval(entry: Content) -> str:
    if entry["value"] is None:
        return "undefined"
    return f"{entry['value']:.2f} [{entry['low']:.2f}, {entry['high']:.2f}]"


def _published_rankings(content: Content) -> list[list[str]]:
    published = content["published"]
    rows = [["any Spearman correlation", published["spearman"], "below", published["source"]]]
    for task, found in content["correlations"].items():
        rho = {(e["metric"], *e["bins"]): e["pooled"]["value"] for e in found["between"]}
        for gain in found["gains"]:
            first, second = gain["bins"]
            value = gain["pooled"]["value"]
            if (first, second) != (max(content["bins"]), min(content["bins"])) or value is None:
                continue
            ours, theirs = gain["truthful"], gain["other"]
            stated = theirs.lower().startswith("conf")  # the abstract is about confidence
            rows.append(
                [
                    f"{task}: rankings at {first} and {second} bins, {ours} against {theirs} (pooled)",
                    "the truthful one more stable" if stated else "–",
                    f"{rho[ours, first, second]:.2f} against {rho[theirs, first, second]:.2f}: "
                    f"{_with_interval(gain['pooled'])}",
                    f"{_sign(gain['pooled'], stated)}; models still miscalibrated, n × {ours} at {second} "
                    f"bins is {_left_over(content, task, ours)[-1]:.1f} times its proper loss",
                ]
            )
    pairs = content["sweep"]["metrics"]["ece"]["pairs"]
    rows.append(
        [
            "flips of ECE rankings over 5 to 50 bins, three Beta models",
            published["flips"],
            ", ".join(f"{pair['pair']} {pair['flips']:.3f}" for pair in pairs),
            "parameters are ours",
        ]
    )
    return rows


def _sign(gain: Content, stated: bool) -> str:
    """Beside a published sign, or by itself."""
    if gain["low"] <= 0.0 <= gain["high"]:
        return "within chance"
    if stated:
        return "same sign" if gain["value"] > 0.0 else "**other sign**"
    return f"the truthful one {'more' if gain['value'] > 0.0 else '**less**'} stable"


def _mechanism(content: Content) -> list[str]:
    by_hand, means = content["by_hand"], content["ece"]
    return [
        "Why an ECE ranking can turn: A's scores lie in [.85, .95], where 20 bins cut at the same places as "
        "10, so its errors of .03 count the same. B's lie in [.55, .75]; the bin [.6, .7) hides errors of "
        f"+.08 and −.08, until 20 bins cut it in two. Means of {content['resamples']} samples of "
        f"{content['n']:,} rows:",
        "",
        *_table(
            ["ECE", "10 bins", "20 bins", "mean, 10 bins", "mean, 20 bins"],
            (
                [
                    name,
                    *(f"{by_hand[name][m]:.3f}" for m in ("10", "20")),
                    *(f"{value:.4f}" for value in means[i]),
                ]
                for i, name in enumerate("AB")
            ),
        ),
        "",
        f"The ranking flips in {content['flips']:.3f} of the samples (LinCE: {content['lin_ce_flips']:.3f}).",
    ]


_BODIES: dict[str, Callable[[Content], list[str]]] = {
    "tightness": _tightness,
    "auto": _tightness,
    "speed": _speed,
    "process": _process,
    "report_page": _process,
    "peers": _peers,
    "metrics": _metrics,
    "frames": _frames,
    "kernels": _kernels,
    "functions": _functions,
    "reproduce": _reproduce,
    "perturbations": _perturbations,
    "rankings": _rankings,
    "semantic": _semantic,
}
