"""Every bound, broken on purpose: each named mutation must turn its tests red.

Run by ``make mutants``. A mutation replaces one piece of source in a copy of the package; if the piece is
gone, or if the tests still pass, the run fails. ``python tests/mutants.py NAME...`` runs some of them.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

KILLERS = Path(__file__).with_suffix(".json")
"""The test that noticed each mutation when it was last recorded; if it does not any more, all are run."""

ROOT = Path(__file__).resolve().parent.parent
CERTIFICATES = "tests/test_certificates.py"
THEORY = "tests/test_theory.py"
PUBLISHED = "tests/test_published.py"
TABLES = "tests/test_table.py tests/test_kernels_sorting.py tests/test_kernels_deviations.py"

SEMANTIC, SEMANTIC_LOOPS = "calcore/semantic", "calcore/kernels/semantic.py"
SEMANTIC_TESTS = "tests/test_semantic.py"
SEMANTIC_KERNELS, SEMANTIC_EXPECTED = "tests/test_semantic_kernels.py", "tests/test_semantic_expected.py"


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    tests: str = CERTIFICATES


FRAMES, FRAME_TESTS = "bindings/calcore_bindings/frames.py", "tests/bindings/test_frames.py"
CELL_TABLE = "calcore/table/cell_table.py"
PLUGIN = "calcore/certificates/plugin.py"
DEVIATION = "calcore/certificates/deviation.py"
BINS = "calcore/certificates/bins.py"
PLAN = "calcore/certificates/plan.py"
LOWER = "calcore/certificates/lower.py"
CERTIFY = "calcore/certificates/__init__.py"
LOSSES = "calcore/scoring/losses.py"
DECOMPOSITION = "calcore/scoring/decomposition.py"
CLINICAL = "calcore/scoring/clinical.py"
SCORING = "tests/test_scoring.py"
DIAGRAMS = "calcore/diagrams.py"
DIAGRAM_TESTS = "tests/test_diagrams.py"
FIGURES = "calcore/figures.py"
FIGURE_TESTS = "tests/test_figures.py"
RECALIBRATION = "calcore/recalibration.py"
RECALIBRATION_TESTS = "tests/test_recalibration.py"
TV = "calcore/certificates/total_variation.py"
FOLDS = "calcore/certificates/folds.py"
SPLIT = "calcore/kernels/folds.py"
NW = "calcore/certificates/windows.py"
BUCKETS = "calcore/certificates/buckets.py"
PERTURBED = "calcore/certificates/perturbed.py"
SLIDING = "calcore/kernels/sliding.py"
OSCILLATION = "calcore/kernels/oscillation.py"
SORTING = "calcore/kernels/sorting.py"
DEVIATIONS = "calcore/kernels/deviations.py"
AVERAGING = "calcore/kernels/averaging.py"
BINNING = "calcore/kernels/binning.py"
BOUNDS = "calcore/bounds.py"
DIVERGENCE = "calcore/kernels/divergence.py"
VALIDATE = "calcore/_validate.py"
INVERSION = "calcore/certificates/inversion.py"
INVERTED = "calcore/kernels/inversion.py"
INVERSIONS = "tests/test_inversion.py"
POLYNOMIALS = "calcore/certificates/polynomials.py"
FITS = "calcore/kernels/polynomials.py"
FITTED = "tests/test_polynomials.py"
TRUTHFUL = "calcore/truthful.py"
TRUTHFUL_LOOPS = "calcore/kernels/truthful.py"
TRUTHFUL_TESTS = "tests/test_truthful.py"
SEMANTIC_CLIENT = "tests/test_semantic_client.py"
SEMANTIC_JUDGES = "tests/test_semantic_judges.py"
SEMANTIC_FILES = "tests/test_semantic_files.py"

_A = "t * base + spread * t * t / 8.0 + nats / n)"
_B = "0.25 * phi * surplus + nats / n"
_C = "return 2.0 * t / root, nats + "
_NOISE = "error -= binomial_noise("
_KL = "if kl_bernoulli(q, middle) <= allowed:"
_BRIER = "kl_upper(table.sum_squared_error / table.n, -math.log(_BRIER * delta) / table.n)"
_TIES = """found = 0
    for i in range(keys.size):
        if i == 0 or keys[i] >> 1 != keys[i - 1] >> 1:
            if found == limit:"""
_CHORD = "total += n[j] * max(at_low, at_high)"

LARGEST = "calcore/kernels/largest.py"
BIN_SUMS, PARTITION = "calcore/kernels/bin_sums.py", "calcore/table/partition.py"
BINNED_ERRORS, BINNED = "calcore/binned.py", "tests/test_binned.py"
COMPARISON, RESAMPLES = "calcore/comparison/__init__.py", "calcore/kernels/bootstrap.py"
BOOTSTRAP = "tests/test_bootstrap.py"

MUTANTS = [
    # deviations of the plug-in bound
    Mutant("(a): deviation halved", DEVIATION, _A, "t * base + spread * t * t / 32.0 + nats / n / 4)"),
    Mutant("(a): delta -> sqrt(delta)", DEVIATION, _A, "t * base + spread * t * t / 8.0 + nats / n / 2)"),
    Mutant("(b): deviation halved", DEVIATION, "return phi * brier * (", "return 0.25 * phi * brier * ("),
    Mutant("(b): delta -> sqrt(delta)", DEVIATION, _B, _B.replace("nats / n", "nats / n / 2")),
    Mutant("(c): deviation halved", DEVIATION, _C, "return 4.0 * t / root, nats + "),
    Mutant("(c): delta -> sqrt(delta)", DEVIATION, _C, "return 2.0 * t / root, 0.5 * nats + "),
    Mutant(
        "(c): lattice step dropped",
        DEVIATION,
        "(t * (base + 1.0 / n) + cost / n))",
        "(t * base + cost / n))",
        THEORY,
    ),
    Mutant(
        "(c): lattice step dropped, sample",
        DEVIATION,
        "return 1.0 / n + cost / (n * t)",
        "return cost / (n * t)",
    ),
    Mutant(
        "all: delta -> sqrt(delta)", DEVIATION, "nats = -math.log(delta)", "nats = -0.5 * math.log(delta)"
    ),
    Mutant("(c) for every binning", DEVIATION, "sign_weights: bool = False", "sign_weights: bool = True"),
    # bias
    Mutant(
        "form 1: bias dropped",
        BINS,
        "return error / table.n, hidden / table.n",
        "return error / table.n, 0.0",
    ),
    Mutant("form 1: bias halved", BINS, "0.5 * float((rows[order] *", "0.25 * float((rows[order] *"),
    Mutant("form 1: worst jump halved", AVERAGING, "level[i] += 2.0 * before", "level[i] += 1.0 * before"),
    Mutant("form 1: jumps at cuts only", AVERAGING, "most += place *", "most += 0.0 * place *"),
    Mutant("form 1: rows outside dropped", BINS, "error = sum(float(", "error = sum(0.0 * float("),
    Mutant(
        "form 1: a cell's rows all in one bin", AVERAGING, "rate[b] * (inside / (right - left))", "rate[b]"
    ),
    Mutant("form 1: a mark inside a cell not a segment", AVERAGING, "cut[cell] = True", "cut[cell] |= False"),
    Mutant(
        "form 1: large cells averaged, their jumps forgotten",
        BINS,
        "errors[np.searchsorted(average.cuts, parts.bare)] = ",
        "_ = ",
    ),
    Mutant(
        "form 1: variation not charged",
        BINS,
        "hidden = smooth.variation * average.worst_jump if",
        "hidden = average.worst_jump if",
    ),
    Mutant("form 1: smallest bins first", BINS, "np.argsort(-rows", "np.argsort(rows"),
    Mutant("form 1: slope halved", BINS, "2.0 * np.minimum(0.5, smooth", "np.minimum(0.5, smooth"),
    Mutant("form 2: spread dropped", BINS, "total = float(spread[bins.mixed].sum())", "total = 0.0"),
    Mutant("form 2: price of the budget dropped", OSCILLATION, "value += meet * budget", "value += 0.0"),
    Mutant(
        "form 2: nothing to buy",
        BINS,
        "rate, center, bins.n, cap, smooth",
        "rate, center, bins.n, 0 * cap, smooth",
    ),
    Mutant("form 2: convex part of F", OSCILLATION, "0.5 * o + gap * gap / (2.0 * o)", "max(gap, 0.5 * o)"),
    Mutant("form 2: concave part of F", OSCILLATION, "c + p - 2.0 * c * p / o", "c + p - 4.0 * c * p / o"),
    # shares of delta
    Mutant("shares: main at all of delta", PLUGIN, "Shares(0.79, 0.105", "Shares(1.0, 0.105"),
    Mutant("both ends at all of delta", CERTIFY, '"both": (0.25, 0.75)', '"both": (1.0, 1.0)'),
    Mutant("brier: measured, not bounded", CERTIFY, _BRIER, "table.sum_squared_error / table.n"),
    # lower bound
    Mutant("lower: union over signs dropped", LOWER, "nats += count * math.log(2.0)", "nats += 0.0"),
    Mutant("lower: noise dropped", LOWER, _NOISE, "error -= 0.0 * binomial_noise("),
    Mutant("lower: noise halved", LOWER, _NOISE, _NOISE.replace("-= b", "-= 0.5 * b"), THEORY),
    Mutant("lower: delta -> sqrt(delta)", LOWER, "cost = nats / n", "cost = 0.5 * nats / n", THEORY),
    Mutant("lower: deviation halved (bounded)", LOWER, "t * t / 8.0 - cost)", "t * t / 32.0 - cost / 4)"),
    Mutant(
        "lower: deviation halved (Bernstein)",
        LOWER,
        "(1.0 + t / 4.0) * brier",
        "(1.0 + t / 4.0) * 0.25 * brier",
    ),
    Mutant(
        "lower: union over bin counts dropped", LOWER, "nats = math.log(len(counts)) - ", "nats = -", THEORY
    ),
    Mutant("lower: more signs than paid for", LOWER, "if cuts.size - 1 > count:", "if False:"),
    Mutant(
        "lower: Brier score measured", CERTIFY, "below, brier)", "below, table.sum_squared_error / table.n)"
    ),
    # the account of delta, what may see labels, what is printed
    Mutant("delta: Brier's share not taken off", CERTIFY, "((1.0 - _BRIER) * delta * part", "(delta * part"),
    Mutant("delta: Brier at all of delta", CERTIFY, "-math.log(_BRIER * delta)", "-math.log(delta)"),
    Mutant(
        "plan: sees labels",
        PLAN,
        "np.diff(self.running.scores[cuts])",
        "1.0 * np.diff(self.running.positives[cuts])",
    ),
    Mutant(
        "plan: form chosen by labels",
        PLUGIN,
        'if plan.form == "1":',
        'if plan.form == "1" and running.positives[-1] % 2:',
    ),
    Mutant(
        "words: none, bins of V = 1",
        CERTIFY,
        'plan, smooth, words = atoms, Smoothness(), "none"',
        'plan, words = atoms, "none"',
    ),
    Mutant(
        "words: V = 1, charged 1/2",
        CERTIFY,
        "smooth, words = Smoothness(variation=1.0)",
        "smooth, words = Smoothness(variation=0.5)",
    ),
    # cells that hold a range of scores
    Mutant(
        "cells: a mixed cell taken for an atom", BINS, "np.where(hi > lo, mixed", "np.where(hi < lo, mixed"
    ),
    Mutant(
        "cells: positives at the upper end",
        BINS,
        "k * (1.0 - 2.0 * lo)",
        "k * (1.0 - 2.0 * hi)",
    ),
    Mutant("cells: negatives at the lower end", BINS, "(2.0 * hi - 1.0)", "(2.0 * lo - 1.0)"),
    Mutant(
        "cells: no jump inside one",
        AVERAGING,
        "if hi[cuts[i + 1] - 1] > lo[cuts[i]] and",
        "if cuts[i + 1] > cuts[i] + 1 and",
    ),
    Mutant("form 1: GMD halved", BINS, "/ rows**2)[mixed]", "/ (2.0 * rows**2))[mixed]"),
    Mutant("form 2: slope halved", BINS, "else lipschitz * width", "else 0.5 * lipschitz * width"),
    Mutant("excess: halved for small t", BOUNDS, "t * t * (0.5 + t", "t * t * (0.25 + t"),
    # the published certificates: folds and tv
    Mutant("folds: fold share dropped", FOLDS, "delta / used)", "delta)", PUBLISHED),
    Mutant("folds: drawn from the user's stream", VALIDATE, "[*entropy, _STREAM]", "entropy[0]", PUBLISHED),
    Mutant("folds: not random", FOLDS, "generator.random(part.size)", "np.zeros(part.size)", PUBLISHED),
    Mutant(
        "tv: penalty halved",
        TV,
        "return math.sqrt((math.log(4.0",
        "return 0.5 * math.sqrt((math.log(4.0",
        PUBLISHED,
    ),
    Mutant(
        "tv: delta -> sqrt(delta) in the penalty",
        TV,
        "- math.log(delta)) / (8.0",
        "- 0.5 * math.log(delta)) / (8.0",
        PUBLISHED,
    ),
    Mutant(
        "tv: union over steps dropped", TV, "math.log(4.0 * (n_distinct - 1))", "math.log(4.0)", PUBLISHED
    ),
    Mutant("tv: TVB halved", TV, "return math.sqrt(2.0 *", "return 0.5 * math.sqrt(2.0 *", PUBLISHED),
    Mutant("tv: mean noise dropped", TV, "variation + mean)", "variation)", PUBLISHED),
    Mutant("tv: PTB dropped", TV, '"transfer": wiggle', '"transfer": 0.0 * wiggle', PUBLISHED),
    Mutant("tv: PTB without V", TV, "wiggle = variation +", "wiggle =", PUBLISHED),
    Mutant("tv: PTB without the fit's variation", TV, "float(split.variation(fitted))", "0.0", PUBLISHED),
    Mutant("tv: deviation halved", TV, '"deviation": empirical', '"deviation": 0.5 * empirical', PUBLISHED),
    Mutant("tv: shares at all of delta", TV, "Shares(0.5, 0.375, 0.125)", "Shares(1.0, 1.0, 1.0)", PUBLISHED),
    Mutant(
        "tv: tested on the training rows",
        SPLIT,
        "if folds[end] == fold:",
        "if folds[end] != fold:",
        PUBLISHED,
    ),
    Mutant(
        "tv: labels inside a tie seen",
        SPLIT,
        "while end < keys.size and keys[end] >> 1 == keys[start] >> 1:",
        "while end < keys.size and keys[end] == keys[start]:",
        PUBLISHED,
    ),
    Mutant(
        "threads: the first that ends stops the others",
        "calcore/table/cell_table.py",
        "except BaseException:  # not at the end of the heap: another thread may hold the last block\n"
        "                over.set()\n"
        "                raise",
        "finally:\n                over.set()",
        "tests/test_table.py -k late_with",
    ),
    # perturbed scores: polynomials
    Mutant(
        "polynomials: bias dropped", POLYNOMIALS, "bias = sum(hidden(", "bias = 0.0 * sum(hidden(", FITTED
    ),
    Mutant("polynomials: bias halved", POLYNOMIALS, "/ (SHIFTS * n) + _R", "/ (2 * SHIFTS * n) + _R", FITTED),
    Mutant(
        "polynomials: delta -> sqrt(delta)",
        POLYNOMIALS,
        "bias, n, -math.log(delta))",
        "bias, n, -0.5 * math.log(delta))",
        FITTED,
    ),
    Mutant(
        "polynomials: one degree too good",
        POLYNOMIALS,
        "errors[kind, best])",
        "errors[kind, best + 1])",
        FITTED,
    ),
    Mutant("E: constant halved", POLYNOMIALS, "(powers / (np.cos", "(0.5 * powers / (np.cos", FITTED),
    Mutant("E: strip of double width", POLYNOMIALS, "t = 2.0 * _BETAS", "t = 4.0 * _BETAS", FITTED),
    Mutant("E: slope halved", POLYNOMIALS, "0.25 * slope)", "0.125 * slope)", FITTED),
    Mutant("E: curvature halved", POLYNOMIALS, "slope * slope / 32.0", "slope * slope / 64.0", FITTED),
    Mutant("polynomials: cells without width", POLYNOMIALS, "apart = (1.0 +", "apart = 0.0 * (1.0 +", FITTED),
    Mutant(
        "polynomials: cells without slope",
        POLYNOMIALS,
        "apart = (1.0 + slope_of(width))",
        "apart = 1.0",
        FITTED,
    ),
    Mutant("polynomials: curvature in cells halved", POLYNOMIALS, "bent = 0.25 *", "bent = 0.125 *", FITTED),
    Mutant(
        "polynomials: lines through three cells",
        POLYNOMIALS,
        "<= plan.degrees + 1  #",
        "<= plan.degrees + 2  #",
        FITTED,
    ),
    Mutant(
        "fit: cells keep their rates too early", FITS, "if m <= degree + 1:", "if m <= degree + 2:", FITTED
    ),
    Mutant("F: without half the range", FITS, "0.5 * o + size", "size", FITTED),
    Mutant(
        "auto: polynomials at all of delta",
        CERTIFY,
        "polynomials_upper(table, running, width, part)",
        "polynomials_upper(table, running, width, delta)",
        FITTED,
    ),
    # the published certificates: nw
    Mutant(
        "nw: plug-in without the empty windows",
        SLIDING,
        "error, rest = two_sum(error, 1.0)",
        "error, rest = two_sum(error, 0.0)",
        PUBLISHED,
    ),
    Mutant("nw: bias dropped", NW, "base = (error + hidden) / n", "base = error / n", PUBLISHED),
    Mutant(
        "nw: bias halved",
        SLIDING,
        "hidden, rest = two_sum(hidden, most)",
        "hidden, rest = two_sum(hidden, 0.5 * most)",
        PUBLISHED,
    ),
    Mutant("nw: curvature halved", SLIDING, "bent + 0.5 * curvature", "bent + 0.25 * curvature", PUBLISHED),
    Mutant("nw: shift forgotten", SLIDING, "bent = slope * (", "bent = 0.0 * (", PUBLISHED),
    Mutant("nw: distances rounded down", SLIDING, "(near / rows) + unit", "(near / rows) - unit", PUBLISHED),
    Mutant(
        "nw: surplus of the weights dropped", NW, "surplus=surplus, reach", "surplus=0.0, reach", PUBLISHED
    ),
    Mutant("nw: reach of the weights dropped", NW, "reach=REACH)", "reach=1.0)", PUBLISHED),
    Mutant("nw: every level at all of delta", NW, "share * delta, brier", "delta, brier", PUBLISHED),
    Mutant("nw: Brier score halved", NW, "share * delta, brier", "share * delta, 0.5 * brier", PUBLISHED),
    Mutant("(a): surplus dropped", DEVIATION, "spread = 1.0 + surplus", "spread = 1.0", PUBLISHED),
    Mutant("(b): surplus dropped", DEVIATION, "0.25 * phi * surplus + nats / n", "nats / n", PUBLISHED),
    Mutant("nw-folds: noise halved", NW, "0.5 * noise / rows", "0.25 * noise / rows", PUBLISHED),
    Mutant("nw-folds: deviation halved", NW, "math.sqrt(0.5 * nats", "0.5 * math.sqrt(0.5 * nats", PUBLISHED),
    Mutant(
        "nw-folds: delta -> sqrt(delta)",
        NW,
        "nats = math.log(2.0) - math.log(delta)",
        "nats = 0.5 * (math.log(2.0) - math.log(delta))",
        PUBLISHED,
    ),
    Mutant("nw-folds: two events at all of delta", NW, "nats = math.log(2.0) - ", "nats = -", PUBLISHED),
    Mutant("nw-folds: transfer dropped", NW, "kl_upper(base, nats / rows) - base if", "0.0 if", PUBLISHED),
    Mutant(
        "nw-folds: tested on the fitted rows",
        NW,
        "np.where(tested, np.uint8(TESTED), np.uint8(FITTED))",
        "np.where(tested, np.uint8(3), np.uint8(FITTED))",
        PUBLISHED,
    ),
    Mutant(
        "nw: bandwidth sees labels",
        NW,
        "variance = at * (1.0 - at)",
        "variance = (cells.k / cells.n)[own]",
        PUBLISHED,
    ),
    # the published certificates: buckets
    Mutant("buckets: union over bins dropped", BUCKETS, "math.log(2.0 * n.size)", "math.log(2.0)", PUBLISHED),
    Mutant(
        "buckets: deviation halved",
        BUCKETS,
        "np.sqrt(nats / (2.0 * n))",
        "0.5 * np.sqrt(nats / (2.0 * n))",
        PUBLISHED,
    ),
    Mutant(
        "buckets: delta -> sqrt(delta)",
        BUCKETS,
        "math.log(2.0 * n.size) - math.log(delta)",
        "math.log(2.0 * n.size) - 0.5 * math.log(delta)",
        PUBLISHED,
    ),
    Mutant(
        "buckets: bias dropped", BUCKETS, "(spread + difference)[mixed]", "(0.0 * spread)[mixed]", PUBLISHED
    ),
    Mutant(
        "buckets: spread of scores forgotten", BUCKETS, "(spread + difference)", "(difference)", PUBLISHED
    ),
    Mutant("buckets: difference halved", BUCKETS, "slope * (table", "0.5 * slope * (table", PUBLISHED),
    Mutant("buckets: transfer dropped", BUCKETS, "kl_upper(base, nats) - base if", "0.0 if", PUBLISHED),
    Mutant(
        "buckets: both events at all of delta", BUCKETS, "nats = (math.log(2.0) - ", "nats = (-", PUBLISHED
    ),
    # scores that were not perturbed
    Mutant("perturbed: never refused", PERTURBED, "return count > mean and", "return False and", PUBLISHED),
    Mutant(
        "perturbed: ties not counted",
        PERTURBED,
        "tied = n - int(count_distinct(table.keys))",
        "tied = 0",
        PUBLISHED,
    ),
    Mutant("perturbed: ends not counted", PERTURBED, "(at_ends, 2.0", "(0, 2.0", PUBLISHED),
    Mutant("perturbed: float32 taken for float64", PERTURBED, "(29, 2.0**-23", "(29, 2.0**-48", PUBLISHED),
    Mutant("perturbed: atoms not counted", PERTURBED, "(most, n * q", "(0, n * q", PUBLISHED),
    Mutant(
        "perturbed: the deployed model need not",
        CERTIFY,
        '"and the deployed model must perturb its scores too"',
        '"in use as here"',
        PUBLISHED,
    ),
    # inversion of kl
    Mutant(
        "kl: delta -> sqrt(delta)",
        DIVERGENCE,
        _KL,
        _KL.replace("allowed", "allowed / 2"),
        f"{CERTIFICATES} tests/test_bounds.py",
    ),
    # bins cut inside ties, sums on cells
    Mutant(
        "ties: cut where a few scores repeat",
        SORTING,
        _TIES,
        _TIES.replace(" >> 1", ""),
        f"{CERTIFICATES} {TABLES}",
    ),
    Mutant(
        "ties: cut where many scores repeat",
        SORTING,
        "keys[mark - 1] >> 1 << 1",
        "keys[mark - 1]",
        CERTIFICATES,
    ),
    Mutant(
        "bins: a heavy cell is not alone",
        BINNING,
        "heavy = (",
        "heavy = False and (",
        "tests/test_kernels_binning.py",
    ),
    Mutant(
        "cells: chord replaced by the mean",
        DEVIATIONS,
        _CHORD,
        "total += n[j] * abs(0.5 * (low[j] + high[j]) - center)",
        TABLES,
    ),
    Mutant(
        "cells: pairs inside a cell dropped", DEVIATIONS, "total += within[j] + 2.0", "total += 2.0", TABLES
    ),
    # the inversion
    Mutant(
        "inversion: delta -> sqrt(delta)",
        INVERSION,
        "return -math.log1p(-LEVEL) - math.log(delta)",
        "return -math.log1p(-LEVEL) - 0.5 * math.log(delta)",
        INVERSIONS,
    ),
    Mutant(
        "inversion: the Brier score dropped",
        INVERSION,
        "0.5 * a * (math.expm1(v) / v) * level.brier",
        "0.0 * a * (math.expm1(v) / v) * level.brier",
        INVERSIONS,
    ),
    Mutant(
        "inversion: the level of the upper end alone",
        INVERSION,
        "if a == 0.5 or middle",
        "if True or a == 0.5 or middle",
        INVERSIONS,
    ),
    Mutant(
        "inversion: the level is not paid for",
        INVERSION,
        "return -math.log1p(-LEVEL) - math.log(delta)",
        "return -math.log(delta)",
        INVERSIONS,
    ),
    Mutant(
        "inversion: auto pays twice",
        CERTIFY,
        "inversion_upper(table, running, smooth, part, brier)",
        "inversion_upper(table, running, smooth, delta, brier)",
        INVERSIONS,
    ),
    Mutant("inversion: no price", INVERSION, "price = min(hidden + loss, joint)", "price = 0.0", INVERSIONS),
    Mutant(
        "inversion: eta of a jump hides a third",
        INVERSION,
        "hidden = min(hidden, smooth.variation * ",
        "hidden = min(hidden, 0.66 * smooth.variation * ",
        INVERSIONS,
    ),
    Mutant(
        "inversion: a multiplier of the loss alone",
        INVERTED,
        "gain = (half - multiplier) * at + one[j, g]",
        "gain = (half - multiplier) * right + one[j, g]",
        INVERSIONS,
    ),
    Mutant(
        "psi: the step across c like all others",
        INVERTED,
        "odds * math.exp(-lam * (2.0 * (math.floor(c) - c) + 1.0))",
        "odds * down",
        INVERSIONS,
    ),
    Mutant("psi: half of the sum", INVERTED, "total += 1.0 + below", "total += 1.0", INVERSIONS),
    Mutant(
        "zeta: the least value seen for the meeting of tangents",
        INVERTED,
        "return under\n            p =",
        "return best\n            p =",
        INVERSIONS,
    ),
    Mutant(
        "zeta: scores inside a bin are one",
        INVERTED,
        "best = min(best, low + level - spread[j])",
        "best = min(best, low + level)",
        INVERSIONS,
    ),
    Mutant(
        "zeta: p above the mean alone", INVERTED, "for side in range(2):", "for side in range(1):", INVERSIONS
    ),
    Mutant(
        "loss: E h is 1",
        INVERTED,
        "log1p(u * mass * math.exp(-log_tail))",
        "log1p(u * mass)",
        INVERSIONS,
    ),
    Mutant(
        "loss: variance alone",
        INVERTED,
        "loss = kappa / lam * math.log1p(",
        "loss = 0.0 * math.log1p(",
        INVERSIONS,
    ),
    Mutant(
        "loss: the spread of scores is not capped with it",
        INVERTED,
        "cap = zeta[j] - floor + spread[j]",
        "cap = zeta[j] - floor",
        INVERSIONS,
    ),
    Mutant("loss: atoms half as large", INVERTED, "ATOM = 0.468824", "ATOM = 0.234412", INVERSIONS),
    Mutant(
        "loss: any law counts as good enough too early",
        INVERTED,
        "if _above(n, mean, lam, kappa, p) > level:",
        "if _above(n, mean, lam, kappa, p) > 0.5 * level:",
        INVERSIONS,
    ),
]


# several classes, segments, two models, monitoring
MULTICLASS = "calcore/certificates/multiclass.py"
CLASSES = "calcore/_classes.py"
CLASS_TESTS = "tests/test_multiclass.py"
GROUPS = "calcore/certificates/groups.py"
GROUP_TESTS = "tests/test_groups.py"
DIFFERENCE = "calcore/certificates/difference.py"
DIFFERENCE_TESTS = "tests/test_difference.py"
BETTING = "calcore/kernels/betting.py"
MONITOR = "calcore/monitor.py"
MONITOR_TESTS = "tests/test_monitor.py"
DRIFT = "calcore/drift.py"
DRIFT_TESTS = "tests/test_drift.py"
COMMANDS = "calcore/cli/commands"
COMMAND_TESTS = "tests/test_cli.py"
PLANNING = "calcore/planning.py"
UNBINNED, DOMINANCE = "calcore/unbinned.py", "calcore/dominance.py"
PLANNING_TESTS = "tests/test_planning.py"

MUTANTS += [
    Mutant(
        "classwise: every class at all of delta", MULTICLASS, "delta=delta / k", "delta=delta", CLASS_TESTS
    ),
    Mutant(
        "classwise: the mean of lower ends twice",
        MULTICLASS,
        "(c.lower, c.upper)",
        "(c.lower, c.lower)",
        CLASS_TESTS,
    ),
    Mutant(
        "classwise: other rows of a group for each class",
        MULTICLASS,
        "seed = one_seed(rng)",
        "seed = rng",
        CLASS_TESTS,
    ),
    Mutant(
        "classes: the last of tied choices",
        LARGEST,
        "place = 0\n        while patterns[i, place] != largest:\n            place += 1",
        "place = k - 1\n        while patterns[i, place] != largest:\n            place -= 1",
        CLASS_TESTS,
    ),
    Mutant("classes: sums not checked", CLASSES, "if off.max() > ", "if False and off.max() > ", CLASS_TESTS),
    Mutant("classes: sums not looked at", LARGEST, " or not abs(total - 1.0) <= tolerance", "", CLASS_TESTS),
    Mutant("classes: entries not looked at", LARGEST, "largest > limit or not", "not", CLASS_TESTS),
    Mutant(
        "classes: columns out of place",
        CLASSES,
        "index = {name: j for",
        "index = {name: k - 1 - j for",
        CLASS_TESTS,
    ),
]

MUTANTS += [
    Mutant("segments: each at all of delta", GROUPS, "delta / len(present)", "delta", GROUP_TESTS),
    Mutant(
        "segments: the pooled one at all of delta",
        GROUPS,
        "delta=_POOLED * delta",
        "delta=delta",
        GROUP_TESTS,
    ),
    Mutant(
        "segments: the pooled share depends on their number",
        GROUPS,
        "delta=_POOLED * delta",
        "delta=delta / (1 + len(names))",
        GROUP_TESTS,
    ),
    Mutant(
        "segments: rows of one group in several", GROUPS, "_validate.generator(seed))", "seed)", GROUP_TESTS
    ),
    Mutant(
        "segments: rows in another segment",
        GROUPS,
        "np.argsort(codes[kept], kind",
        "np.argsort(-codes[kept], kind",
        GROUP_TESTS,
    ),
    Mutant(
        "segments: missing ones taken",
        VALIDATE,
        "missing = values != values  # NaN and NaT",
        "missing = values < values",
        GROUP_TESTS,
    ),
]

MUTANTS += [
    Mutant(
        "plan: deviation forgotten",
        PLANNING,
        "base + smallest_deviation(base, n, part * SHARES.main, brier).total",
        "base",
        PLANNING_TESTS,
    ),
    Mutant(
        "plan: error of the model forgotten", PLANNING, "ce + planner.best", "planner.best", PLANNING_TESTS
    ),
    Mutant(
        "plan: inversion without the noise seen",
        INVERSION,
        "seen = float(_noise(part.deviation).sum()) + n * ce",
        "seen = n * ce",
        PLANNING_TESTS,
    ),
    Mutant(
        "plan: inversion without the model's error",
        INVERSION,
        "seen = float(_noise(part.deviation).sum()) + n * ce",
        "seen = float(_noise(part.deviation).sum())",
        PLANNING_TESTS,
    ),
    Mutant(
        "plan: polynomials without noise",
        POLYNOMIALS,
        "_THINNED * _NOISE * noise",
        "0.0 * noise",
        PLANNING_TESTS,
    ),
    Mutant("plan: both ends priced as one", PLANNING, "delta * _PARTS[side][1]", "delta", PLANNING_TESTS),
    Mutant(
        "plan: scores taken for atoms", PLANNING, "np.where(count > 1,", "np.where(count > 0,", PLANNING_TESTS
    ),
    Mutant(
        "sensitivity: one variation for all",
        PLANNING,
        "variation=v,\n            groups",
        "variation=values[0],\n            groups",
        PLANNING_TESTS,
    ),
]

MUTANTS += [
    Mutant(
        "difference: each model at all of delta",
        DIFFERENCE,
        "certify(table, delta=delta / 2.0",
        "certify(table, delta=delta",
        DIFFERENCE_TESTS,
    ),
    Mutant(
        "difference: ends of one side",
        DIFFERENCE,
        "first.lower - second.upper,",
        "first.lower - second.lower,",
        DIFFERENCE_TESTS,
    ),
    Mutant(
        "difference: Brier, both sides at all of delta",
        DIFFERENCE,
        "float(len(a)), delta / 2.0",
        "float(len(a)), delta",
        DIFFERENCE_TESTS,
    ),
    Mutant("difference: Brier, range 1", DIFFERENCE, "span=2.0", "span=1.0", DIFFERENCE_TESTS),
    Mutant(
        "difference: Brier, rows of several in a group",
        DIFFERENCE,
        "a, b = a.take(index), b.take(index)",
        "a, b = a, b",
        DIFFERENCE_TESTS,
    ),
]

MUTANTS += [
    Mutant(
        "monitor: the tolerated error halved",
        BETTING,
        "stake * (x - c)",
        "stake * (x - 0.5 * c)",
        MONITOR_TESTS,
    ),
    Mutant(
        "monitor: bets on the label to come",
        BETTING,
        "f = residual[k, b] /",
        "f = (residual[k, b] + r) /",
        MONITOR_TESTS,
    ),
    Mutant(
        "monitor: stakes on the gain to come",
        BETTING,
        "stake = (total - c * rows)",
        "stake = (total + x - c * rows)",
        MONITOR_TESTS,
    ),
    Mutant("monitor: gains above 1", BETTING, "f = min(1.0, max(-1.0, f))", "f = 2.0 * f", MONITOR_TESTS),
    Mutant(
        "monitor: stakes without limit",
        BETTING,
        "min(0.5 / (1.0 + c), max(0.0, stake))",
        "max(0.0, stake)",
        MONITOR_TESTS,
    ),
    Mutant(
        "monitor: the richest player counts",
        BETTING,
        "mean += wealth[k, j]",
        "mean = max(mean, n_players * wealth[k, j])",
        MONITOR_TESTS,
    ),
    Mutant(
        "monitor: levels above a gap",
        MONITOR,
        "int(np.argmin(np.append(refuted, False)))",
        "int(refuted.sum())",
        MONITOR_TESTS,
    ),
    Mutant(
        "monitor: one level too high",
        MONITOR,
        "self._nulls[n_refuted])",
        "self._nulls[n_refuted + 1])",
        MONITOR_TESTS,
    ),
    Mutant(
        "monitor: delta -> sqrt(delta)",
        MONITOR,
        "before,\n                1.0 / self.delta,",
        "before,\n                self.delta**-0.5,",
        MONITOR_TESTS,
    ),
    Mutant(
        "monitor: lower bound at sqrt(delta)",
        MONITOR,
        ">= 1.0 / self.delta",
        ">= self.delta**-0.5",
        MONITOR_TESTS,
    ),
    Mutant("drift: the observed division not counted", DRIFT, "reached = 1", "reached = 0", DRIFT_TESTS),
    Mutant(
        "drift: both tests at all of the level",
        DRIFT,
        "min(1.0, 2.0 * min(p_labels, p_scores))",
        "min(p_labels, p_scores)",
        DRIFT_TESTS,
    ),
    Mutant(
        "drift: binomial draws",
        DRIFT,
        "generator.hypergeometric(positives, rows - positives, mine, (m, rows.size))",
        "generator.binomial(mine, positives / rows, (m, rows.size))",
        DRIFT_TESTS,
    ),
    Mutant("drift: equal statistics do not count", DRIFT, ">= least", "> float(observed)", DRIFT_TESTS),
    # the command
    Mutant(
        "command: a monitor with other parameters goes on",
        f"{COMMANDS}/monitor.py",
        "if wanted is not None and wanted != has:",
        "if wanted is None and wanted != has:",
        f"{COMMAND_TESTS}::TestMonitor",
    ),
    Mutant(
        "command: a monitor is saved before anything is said",
        f"{COMMANDS}/monitor.py",
        "flush()  # saved",
        "pass  # saved",
        f"{COMMAND_TESTS}::TestMonitor",
    ),
    Mutant(
        "command: drift passes at its level",
        f"{COMMANDS}/drift.py",
        "found.p_value > alpha",
        "found.p_value >= alpha",
        f"{COMMAND_TESTS}::TestDrift",
    ),
    Mutant(
        "command: models swapped",
        f"{COMMANDS}/compare.py",
        "found_in(given.labels, *given.scores,",
        "found_in(given.labels, *given.scores[::-1],",
        f"{COMMAND_TESTS}::TestCompare",
    ),
    Mutant(
        "command: a gate for the first class only",
        f"{COMMANDS}/certify.py",
        "max(c.upper for c in (*pooled, *ends.values()))",
        "next(c.upper for c in (*pooled, *ends.values()))",
        f"{COMMAND_TESTS}::TestClasses",
    ),
    Mutant(
        "report: differences rounded to the nearest",
        "calcore/report/pairs.py",
        "_rounded(interval.upper, digits, ROUND_CEILING)",
        'f"{interval.upper:.{digits}f}"',
        "tests/test_report.py",
    ),
    # binned errors
    Mutant("bins: edges by rounding alone", BIN_SUMS, "if scores[i] < place / size:", "if False:", BINNED),
    Mutant("bins: searched from above", BIN_SUMS, "(step - 1) / n_steps", "(step + 1) / n_steps", BINNED),
    Mutant("bins: low parts of scores dropped", BIN_SUMS, "(more - low / 2.0**_LOW_BITS)", "more", BINNED),
    Mutant("bins: weights of rows, not of errors", BIN_SUMS, "w * (y - block[i])", "(y - block[i])", BINNED),
    Mutant("bins: ties cut at quantiles", PARTITION, "- 1] >> 1) + 1 << 1)", "- 1] + 1))", BINNED),
    Mutant("bins: rows left over are lost", "calcore/kernels/sorting.py", "starts[used] = n\n", "", BINNED),
    Mutant("bins: weight 0 counts", PARTITION, "if not weights.all():", "if not weights.any():", BINNED),
    Mutant("bins: cells may be cut", PARTITION, "if not cut.any():", "if not cut.all():", BINNED),
    Mutant("debiased: one row too many", BINNED_ERRORS, "np.maximum(rows - 1, 1)", "rows", BINNED),
    Mutant("classwise: the sum", BINNED_ERRORS, ") / len(rows.names)", ")", BINNED),
    Mutant("curve: noise halved", BINNED_ERRORS, "share * np.sqrt(2.0 /", "share * np.sqrt(0.5 /", BINNED),
    Mutant("curve: hidden halved", BINNED_ERRORS, "0.25 * (1.0 + slope)", "0.125 * (1.0 + slope)", BINNED),
    Mutant(
        "table: intervals at sqrt(delta)",
        BINNED_ERRORS,
        "proportion_ci(1.0 - delta",
        "proportion_ci(1.0 - delta**0.5",
        BINNED,
    ),
    Mutant(
        "full: equal hashes are equal rows", "calcore/_classes.py", "if not same.all():", "if False:", BINNED
    ),
    # truthful errors
    Mutant(
        "truthful: ties in the order of rows, not of the seed",
        TRUTHFUL,
        "self._generator.permutation(len(scores))",
        "np.arange(len(scores))",
        TRUTHFUL_TESTS,
    ),
    Mutant("truthful: ties are not split", TRUTHFUL, "if len(tied):", "if len(tied) < 0:", TRUTHFUL_TESTS),
    Mutant(
        "truthful: no correction of the confidence",
        TRUTHFUL,
        "+ (n - right) / n / n",
        "+ 0 * right",
        TRUTHFUL_TESTS,
    ),
    Mutant(
        "truthful: the loss is not corrected for recalibration",
        TRUTHFUL,
        "seconds / np.maximum(rows - 1, 1)",
        "seconds / np.maximum(rows, 1)",
        TRUTHFUL_TESTS,
    ),
    Mutant(
        "truthful: a ranking within rho is certain",
        TRUTHFUL,
        "max(best.total - best.loss, 0.0)",
        "0.0",
        f"{TRUTHFUL_TESTS}::test_verdicts",
    ),
    Mutant("truthful: no margin", TRUTHFUL, "gap <= rho + margin", "gap <= rho", TRUTHFUL_TESTS),
    Mutant(
        "truthful: one bin for all classes",
        TRUTHFUL,
        "index += rows.best * used",
        "index += rows.best * 0",
        TRUTHFUL_TESTS,
    ),
    Mutant(
        "truthful: a cut's own value below it",
        TRUTHFUL_LOOPS,
        "if cuts[middle] <= x:",
        "if cuts[middle] < x:",
        TRUTHFUL_TESTS,
    ),
    Mutant(
        "truthful: sums of one word",
        TRUTHFUL_LOOPS,
        "sums[b] = (sums[b] - hits[b]) + rests[b]",
        "sums[b] = sums[b] - hits[b]",
        TRUTHFUL_TESTS,
    ),
    Mutant(
        "smooth: cells without their third moment",
        UNBINNED,
        "+ turn**3 / 6.0 * odd[1]",
        "",
        "tests/test_unbinned.py::test_mean_cosines",
    ),
    Mutant(
        "smooth: rows of a cell stand at its mean",
        UNBINNED,
        "np.where(several, hits - squares - places * sums, 0.0)",
        "np.zeros(len(sums))",
        "tests/test_unbinned.py::test_bound_from_cells_holds_for_the_rows",
    ),
    Mutant(
        "smooth: the end at 0 comes too near",
        UNBINNED,
        "reach = _REACH * most",
        "reach = _REACH * most if given.places[0] > 0.0 else 1e-3 * most",
        "tests/test_unbinned.py::test_norm_at_given_bandwidths",
    ),
    Mutant(
        "smooth: gaps cut too short",
        "calcore/kernels/residuals.py",
        "cut += max(places[i] - places[i - 1] - 2.0 * reach, 0.0)",
        "cut += max(places[i] - places[i - 1] - 0.5 * reach, 0.0)",
        "tests/test_unbinned.py::test_moments_in_cells",
    ),
    Mutant(
        "cumulative: looked at inside a tie",
        "calcore/kernels/residuals.py",
        "        if i + 1 == keys.size or keys[i + 1] >> 1 != keys[i] >> 1:\n            score, rows",
        "        if i >= 0:\n            score, rows",
        "tests/test_unbinned.py::test_ecce_is_exact",
    ),
    Mutant(
        "cumulative: range without the start at 0",
        "calcore/kernels/residuals.py",
        "low = high = total = rounding = variance = lost = 0.0",
        "low, high, total, rounding, variance, lost = 1e300, -1e300, 0.0, 0.0, 0.0, 0.0",
        "tests/test_unbinned.py::test_ecce_is_exact",
    ),
    Mutant(
        "cumulative: law of the largest without the second side",
        UNBINNED,
        "return 4.0 * sum(",
        "return 2.0 * sum(",
        "tests/test_unbinned.py::test_law_of_the_largest",
    ),
    Mutant(
        "test: equal statistics do not count",
        "calcore/kernels/resampling.py",
        "distance(labels, expected, ends, kind) >= observed",
        "distance(labels, expected, ends, kind) > observed",
        "tests/test_unbinned.py::test_equal_statistics_count",
    ),
    Mutant(
        "test: p-value without the labels given",
        UNBINNED,
        "p_value=(1 + total) / (1 + draws)",
        "p_value=total / draws",
        "tests/test_unbinned.py::test_power",
    ),
    Mutant(
        "test: one generator for all resamples of a group",
        "calcore/kernels/resampling.py",
        "draw(thresholds, counts, seeds[b], labels)",
        "draw(thresholds, counts, seeds[0], labels)",
        "tests/test_unbinned.py::test_p_value_against_enumeration",
    ),
    Mutant(
        "test: lanes of a word are not independent",
        "calcore/kernels/resampling.py",
        "undecided &= bits\n",
        "undecided &= ~bits\n",
        "tests/test_unbinned.py::test_draws_follow_their_scores",
    ),
    Mutant(
        "dominance: means may differ",
        DOMINANCE,
        "max(0.0, -low, last - low), max(high, high - last)",
        "max(0.0, -low), high",
        "tests/test_dominance.py::test_compared_by_definition",
    ),
    Mutant(
        "dominance: a greedy chain",
        DOMINANCE,
        "if length[j] + 1 > length[i]:",
        "if following[i] < 0:",
        "tests/test_dominance.py::test_chain_by_hand",
    ),
    Mutant(
        "dominance: unpaired resamples",
        DOMINANCE,
        "drawn[:, columns[better]] - drawn[:, columns[worse]]",
        "drawn[:, columns[better]] - drawn[::-1, columns[worse]]",
        "tests/test_dominance.py::test_noise_explains",
    ),
    Mutant(
        "scoring: log loss clipped at the machine epsilon",
        LOSSES,
        "np.log(loss, out=loss)",
        "np.log(np.maximum(loss, 2.0**-52), out=loss)",
        f"{SCORING}::test_infinite_log_loss_is_never_nan",
    ),
    Mutant(
        "scoring: 1 - s rounded and left so",
        "calcore/kernels/scoring.py",
        "0.0 if positive or r == 0.0 else r / t",
        "0.0",
        f"{SCORING}::test_likelihoods",
    ),
    Mutant(
        "scoring: infinite losses of weight 0",
        LOSSES,
        "losses[part == 0.0] = 0.0",
        "losses *= 1.0",
        f"{SCORING}::test_infinite_log_loss_is_never_nan",
    ),
    Mutant(
        "scoring: half of the Brier score of several classes",
        LOSSES,
        'np.einsum("ij,ij->i", block, block)',
        '0.5 * np.einsum("ij,ij->i", block, block)',
        f"{SCORING}::test_published_cases",
    ),
    Mutant(
        "scoring: covariance within bins once",
        DECOMPOSITION,
        "within_bin_covariance=2.0 * float",
        "within_bin_covariance=float",
        f"{SCORING}::test_parts_equal_exact_arithmetic",
    ),
    Mutant(
        "scoring: resolution around one half",
        DECOMPOSITION,
        "(weight * (rates - rate) ** 2)",
        "(weight * (rates - 0.5) ** 2)",
        f"{SCORING}::test_parts_equal_exact_arithmetic",
    ),
    Mutant(
        "scoring: isotonic regression without weights",
        DECOMPOSITION,
        "isotonic_regression(pool.hits / mass, weights=mass)",
        "isotonic_regression(pool.hits / mass)",
        f"{SCORING}::test_corp_equals_the_max_min_formula",
    ),
    Mutant(
        "scoring: slope's information about the plain mean",
        CLINICAL,
        "middle = float((weight * x).sum()) / total if total > 0.0 else 0.0",
        "middle = center",
        f"{SCORING}::test_closed_forms",
    ),
    Mutant(
        "scoring: rows at the threshold end a separation",
        CLINICAL,
        "if low.max() <= high.min():",
        "if low.max() < high.min():",
        f"{SCORING}::test_separation_and_its_absence",
    ),
    Mutant(
        "scoring: observed positives counted among the negatives",
        CLINICAL,
        "betaincinv(observed + 1.0, pool.total - observed, 1.0",
        "betaincinv(observed, pool.total - observed, 1.0",
        SCORING,
    ),
    Mutant(
        "scoring: percentiles of distinct scores",
        CLINICAL,
        "e90=_percentile(off[order], mass[order], 0.9)",
        "e90=_percentile(off[order], np.ones(len(off)), 0.9)",
        f"{SCORING}::test_closed_forms",
    ),
    Mutant(
        "temperature: separable rows stop where the slope underflows",
        RECALIBRATION,
        "elif _evaluate(data, low)[1] >= 0.0:",
        "elif _evaluate(data, low)[1] > 0.0:",
        f"{RECALIBRATION_TESTS}::test_ends_on_bounds",
    ),
    Mutant(
        "temperature: L-BFGS-B has the last word",
        RECALIBRATION,
        "root: Any = brentq(slope, left, right, xtol=1e-13)",
        "root: Any = found",
        f"{RECALIBRATION_TESTS}::test_closed_forms",
    ),
    Mutant(
        "temperature: probabilities taken for logits",
        RECALIBRATION,
        '        if self.input == "logits":\n            _refuse_probabilities(matrix, binary)\n',
        "",
        f"{RECALIBRATION_TESTS}::test_probabilities",
    ),
    Mutant(
        "temperature: rows of zeros and ones refused",
        RECALIBRATION,
        "    if whole:\n        return\n",
        "",
        f"{RECALIBRATION_TESTS}::test_closed_forms",
    ),
    Mutant(
        "compare: unpaired resamples",
        COMPARISON,
        "drawn = values_a - values_b",
        "drawn = values_a - values_b[::-1]",
        f"{BOOTSTRAP}::test_against_explicit_resampling",
    ),
    Mutant(
        "compare: all of delta on each side",
        COMPARISON,
        "math.floor((draws + 1) * delta / 2.0",
        "math.floor((draws + 1) * delta",
        f"{BOOTSTRAP}::test_against_explicit_resampling",
    ),
    Mutant(
        "compare: no correction for several differences",
        COMPARISON,
        "corrected = delta / max(len(pairs), 1)",
        "corrected = delta",
        f"{BOOTSTRAP}::test_level_is_corrected_for_the_number_of_differences",
    ),
    Mutant(
        "compare: p-values of 0",
        COMPARISON,
        "2 * (1 + least) / (1 + len(drawn))",
        "2 * least / (1 + len(drawn))",
        f"{BOOTSTRAP}::test_against_explicit_resampling",
    ),
    Mutant(
        "compare: quantile bins of equal width",
        "calcore/comparison/models.py",
        "index = partition.index_of(scores, sums.edges)",
        "index = binning.uniform_bins(scores, metric.n_bins)",
        f"{BOOTSTRAP}::test_against_explicit_resampling",
    ),
    Mutant(
        "compare: no word of bias",
        "calcore/comparison/results.py",
        "_BIAS = 0.25",
        "_BIAS = 25.0",
        f"{BOOTSTRAP}::test_where_noise_makes_ece_too_large_a_warning_says_so",
    ),
    Mutant(
        "compare: sums by the rows of the sample",
        "calcore/comparison/resamples.py",
        "rows = np.zeros(len(some), np.int64)",
        "rows = np.full(len(some), n - units.n, np.int64)",
        f"{BOOTSTRAP}::test_groups_against_explicit_resampling",
    ),
    Mutant(
        "compare: the estimate is that of the integers",
        "calcore/comparison/resamples.py",
        "- before\n",
        "- estimates[i, j]\n",
        f"{BOOTSTRAP}::test_constant_rows_have_a_point",
    ),
    Mutant(
        "resamples: draws that met no row are lost",
        RESAMPLES,
        "        for _ in range(missed[r]):\n",
        "        for _ in range(0):\n",
        f"{BOOTSTRAP}::test_sums_over_blocks",
    ),
    Mutant(
        "resamples: whole words where fewer draws are left",
        RESAMPLES,
        "bits & (_ALL >> np.uint64(64 - min(rest, 64)))",
        "bits",
        f"{BOOTSTRAP}::test_counts_over_blocks",
    ),
    Mutant(
        "resamples: draws made again among the first half",
        RESAMPLES,
        "place = bits >> shift\n",
        "place = bits >> (shift + _ONE)\n",
        f"{BOOTSTRAP}::test_counts_over_blocks",
    ),
    Mutant(
        "resamples: one row of a group",
        RESAMPLES,
        "            spread[i - begin] = counts[u]\n",
        "            spread[i - begin] = counts[u] if i == starts[first + u] else 0\n",
        f"{BOOTSTRAP}::test_sums_are_those_of_the_counts",
    ),
    # weights, curves, rare labels
    Mutant("bins: marks missed by rounding", PARTITION, "_ROUNDING = 2.0**-44", "_ROUNDING = 0.0", BINNED),
    Mutant(
        "curve: errors hide where no scores are",
        BINNED_ERRORS,
        "sums.edges.clip(*ends)",
        "sums.edges",
        BINNED,
    ),
    Mutant(
        "truthful: positives that were not seen do not count",
        TRUTHFUL,
        "binner, quantile**2)",
        "binner, 0.0)",
        f"{TRUTHFUL_TESTS}::test_a_rare_class_is_not_certain_for_want_of_positives",
    ),
    Mutant(
        "diagrams: Clopper-Pearson at one event of unequal rates",
        DIAGRAMS,
        "np.where(count == 1.0, half / n, 0.0)",
        "np.where(count == 1.0, betaincinv(k, n - k + 1.0, half), 0.0)",
        DIAGRAM_TESTS,
    ),
    Mutant(
        "diagrams: simultaneous intervals at the level of one",
        DIAGRAMS,
        "delta / np.count_nonzero(sums.rows)",
        "delta",
        DIAGRAM_TESTS,
    ),
    Mutant(
        "diagrams: each class has all of delta",
        DIAGRAMS,
        "share=settings.delta / k",
        "share=settings.delta",
        DIAGRAM_TESTS,
    ),
    Mutant(
        "diagrams: errors that cancel inside a bin go unseen",
        DIAGRAMS,
        "bool(inside.size) or ",
        "",
        DIAGRAM_TESTS,
    ),
    Mutant(
        "diagrams: a bin of ones joined to the one below",
        DIAGRAMS,
        "starts = np.union1d(edges[:-1], quantiles[:-1])",
        "starts = np.union1d(edges, quantiles)[:-1]",
        DIAGRAM_TESTS,
    ),
    Mutant(
        "diagrams: too high and too low exchanged",
        DIAGRAMS,
        "off < 0, off > 0",
        "off > 0, off < 0",
        DIAGRAM_TESTS,
    ),
    Mutant(
        "diagrams: area over thresholds instead of rows",
        DIAGRAMS,
        "(rows[::-1] * risk).sum()",
        "risk.sum()",
        DIAGRAM_TESTS,
    ),
    Mutant(
        "diagrams: least area with risk over all rows",
        DIAGRAMS,
        "(i / (n - errors + i))",
        "(i / n)",
        DIAGRAM_TESTS,
    ),
    Mutant(
        "diagrams: certificate of other rows taken",
        DIAGRAMS,
        "    if rows != n:\n",
        "    if rows > n + 1:\n",
        DIAGRAM_TESTS,
    ),
    Mutant(
        "figures: no zoom",
        FIGURES,
        "if span >= 0.5 or",
        "if span >= 0.0 or",
        FIGURE_TESTS,
    ),
    Mutant(
        "figures: long titles run over the edge",
        FIGURES,
        'return [part for line in text.split("\\n") for part in textwrap.wrap(line, most)]',
        'return text.split("\\n")[: most + 1]',
        FIGURE_TESTS,
    ),
    Mutant(
        "figures: the risk of all rows is left out",
        FIGURES,
        "kept = thinned(len(coverage))",
        "kept = thinned(max(len(coverage) - 1, 1))",
        FIGURE_TESTS,
    ),
    Mutant(
        "evaluation: an interval that says nothing is a verdict",
        "calcore/evaluation/words.py",
        "if certificate.upper >= table.sum_abs_error / table.n:",
        "if certificate.upper >= 1.0 + table.sum_abs_error / table.n:",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "evaluation: the lower end of the verdict is rounded up",
        "calcore/evaluation/words.py",
        "low, high = _rounded(c.lower, digits, ROUND_FLOOR), _r",
        "low, high = _rounded(c.lower, digits, ROUND_CEILING), _r",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "evaluation: one class is no matter",
        "calcore/evaluation/words.py",
        '    if table.n_positive in (0, table.n):\n        return "too few rows"\n',
        "",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "evaluation: rows are resampled with replacement",
        "calcore/evaluation/one.py",
        "RESAMPLED_ROWS, replace=False",
        "RESAMPLED_ROWS, replace=True",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "evaluation: empty bins are those with rows",
        "calcore/evaluation/words.py",
        "str(k - used[k])",
        "str(used[k])",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "report: names are not escaped",
        "calcore/report/page.py",
        "autoescape=True",
        "autoescape=False",
        "tests/test_report_html.py",
    ),
    Mutant(
        "compare: rows of two files are not matched",
        "calcore/files/rows.py",
        "second.scores[0][matched]",
        "second.scores[0]",
        "tests/test_cli_report.py",
    ),
    Mutant(
        "compare: labels of two files need not agree",
        "calcore/files/rows.py",
        "np.flatnonzero(first.labels != second.labels[matched])",
        "np.flatnonzero(first.labels != first.labels)",
        "tests/test_cli_report.py",
    ),
    Mutant(
        "compare: noise counts as a difference",
        "calcore/comparison/__init__.py",
        "allowance = abs(a.bias) + abs(b.bias) if biased else 0.0",
        "allowance = 0.0",
        "tests/test_bootstrap.py::test_noise_is_not_called_a_difference",
    ),
    Mutant(
        "compare: no positives are enough",
        "calcore/comparison/__init__.py",
        "_TOO_FEW = 10",
        "_TOO_FEW = 0",
        "tests/test_bootstrap.py::test_rare_positives_decide_nothing",
    ),
    Mutant(
        "compare: rows of a group count one by one",
        "calcore/comparison/__init__.py",
        "if units.order is None:\n        positive",
        "if True:\n        positive",
        "tests/test_bootstrap.py::test_few_positives_are_counted_by_groups",
    ),
    Mutant(
        "figures: the sixth curve looks like the first",
        FIGURES,
        "_MARKERS[number // len(_STYLES) % len(_MARKERS)]",
        "_MARKERS[0]",
        f"{FIGURE_TESTS}::test_curves_differ_up_to_25",
    ),
    Mutant(
        "figures: no room for the legend",
        FIGURES,
        "max(top / (1.0 - taken),",
        "max(top,",
        f"{FIGURE_TESTS}::test_legends_of_many_models_cover_no_curve",
    ),
    Mutant(
        "figures: names are mathtext",
        FIGURES,
        "    text.set_parse_math(False)\n",
        "    text.set_parse_math(True)\n",
        f"{FIGURE_TESTS}::test_names_are_shown_as_they_are",
    ),
    Mutant(
        "figures: our own figures do not grow with fonts",
        FIGURES,
        "return max(*sizes, 10.0) / 10.0",
        "return 1.0",
        f"{FIGURE_TESTS}::test_nothing_is_cut_off_with_large_fonts",
    ),
    Mutant(
        "figures: shared axes are narrowed",
        FIGURES,
        "low, high = min(low, *before), max(high, *before)",
        "pass",
        f"{FIGURE_TESTS}::test_shared_axes_are_not_zoomed",
    ),
    Mutant(
        "diagrams: no end for a tiny delta",
        DIAGRAMS,
        "below = np.where((half < _TINY_TAIL) | np.isnan(below), wider, below)",
        "below = np.nan_to_num(below)",
        f"{DIAGRAM_TESTS}::test_ends_of_tiny_delta_hold",
    ),
    Mutant(
        "diagrams: certificate of other scores taken",
        DIAGRAMS,
        "if abs(certificate.mean_score - mean) > slack:",
        "if abs(certificate.mean_score - mean) > 1.0:",
        f"{DIAGRAM_TESTS}::test_certificates_of_the_same_rows",
    ),
    Mutant(
        "evaluation: all rows of a group count",
        "calcore/evaluation/one.py",
        "return rows if self.kept is None else rows.take(self.kept)",
        "return rows",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "evaluation: a certain negative is unsure",
        "calcore/evaluation/one.py",
        "np.round(np.where(positive, table.scores, 1.0 - table.scores), 15)",
        "table.scores",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "evaluation: certified pairs hold one by one",
        "calcore/evaluation/models.py",
        "share = delta / (2 * len(pairs))",
        "share = delta",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "evaluation: too few resamples to tell all pairs apart",
        "calcore/evaluation/models.py",
        "n_resamples=max(draws, min(together, _MOST_DRAWS)),",
        "n_resamples=draws,",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "evaluation: ECE ranks though its ranking turns",
        "calcore/evaluation/models.py",
        "    if below and above:\n",
        "    if below and not above and False:\n",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "classes: losses of one side only",
        "calcore/evaluation/classes.py",
        "ndtri(1.0 - delta / 2.0)",
        "ndtri(1.0 - delta)",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "classes: whole vectors that are met once",
        "calcore/evaluation/classes.py",
        "if n >= _REPEATED * len(first) else None",
        "if n >= len(first) else None",
        "tests/test_evaluation.py",
    ),
    Mutant(
        "files: columns of a pattern are numbered as they come",
        "calcore/files/plan.py",
        'labels = tuple(_typed(part, "--classes", column) for part in matched)',
        "labels = tuple(range(len(matched)))",
        "tests/test_cli_report.py",
    ),
    Mutant(
        "files: lists by column",
        "calcore/files/columns.py",
        "return _numbers(flat).reshape(-1, k).T",
        "return _numbers(flat).reshape(k, -1)",
        "tests/test_cli_report.py",
    ),
    Mutant(
        "semantic: sample number not in the key",
        "calcore/semantic/cache.py",
        '        "index": index,\n',
        '        "index": 0,\n',
        SEMANTIC_CLIENT,
    ),
    Mutant(
        "semantic: question not in the key",
        "calcore/semantic/cache.py",
        '        "subject": subject,\n',
        '        "subject": "",\n',
        SEMANTIC_CLIENT,
    ),
    Mutant(
        "semantic: replies not kept",
        "calcore/semantic/client.py",
        "reply = cache.put(key, self._retried(messages, subject, index))",
        "reply = self._retried(messages, subject, index)",
        SEMANTIC_CLIENT,
    ),
    Mutant(
        "semantic: Retry-After ignored",
        "calcore/semantic/client.py",
        "time.sleep(max(pause, found.wait))",
        "time.sleep(pause)",
        f"{SEMANTIC_CLIENT}::TestRetries",
    ),
    Mutant(
        "semantic: other threads do not wait",
        "calcore/semantic/client.py",
        "self._not_before = max(self._not_before, until)",
        "self._not_before = 0.0",
        f"{SEMANTIC_CLIENT}::TestRetries",
    ),
    Mutant(
        "semantic: incomplete replies end the run",
        "calcore/semantic/client.py",
        "_MALFORMED = (ValueError, TypeError,",
        "_MALFORMED = (TypeError,",
        f"{SEMANTIC_CLIENT}::TestRetries",
    ),
    Mutant(
        "semantic: endless tries of an endpoint that is down",
        "calcore/semantic/client.py",
        "down = self._failures >= _FAILURES",
        "down = False",
        f"{SEMANTIC_CLIENT}::TestRetries",
    ),
    Mutant(
        "semantic: key in messages",
        "calcore/semantic/client.py",
        'text = text.replace(key, "***")',
        "pass",
        f"{SEMANTIC_CLIENT}::TestSecrets",
    ),
    Mutant(
        "semantic: half a key in messages",
        "calcore/semantic/client.py",
        r"\b[sS][kK]-[\w*.+/=-]{6,}|",
        "",
        f"{SEMANTIC_CLIENT}::TestSecrets",
    ),
    Mutant(
        "semantic: items read without end",
        "calcore/semantic/pool.py",
        "or len(waiting) >= _AHEAD * n_threads",
        "",
        f"{SEMANTIC_CLIENT}::TestInOrder",
    ),
    Mutant(
        "semantic: confidences are percentages",
        "calcore/semantic/sampler.py",
        "return answer, percent / 100",
        "return answer, percent",
        f"{SEMANTIC_CLIENT}::TestSampler",
    ),
    Mutant(
        "semantic: answers a judge forgot are let through",
        "calcore/semantic/judges/asked.py",
        "    if missing:\n",
        "    if len(missing) > n:\n",
        f"{SEMANTIC_JUDGES}::TestAsked",
    ),
    Mutant(
        "semantic: answers in two classes are let through",
        "calcore/semantic/judges/asked.py",
        "            if number[i - 1] >= 0:\n",
        "            if number[i - 1] > n:\n",
        f"{SEMANTIC_JUDGES}::TestAsked",
    ),
    Mutant(
        "semantic: threshold is a distance",
        "calcore/semantic/judges/embeddings.py",
        "1.0 - self.threshold + 1e-9",
        "self.threshold + 1e-9",
        f"{SEMANTIC_JUDGES}::TestEmbeddings",
    ),
    Mutant(
        "semantic: signs between digits dropped",
        "calcore/semantic/judges/exact.py",
        r'r"(?<![0-9])[^\w\s]|[^\w\s](?![0-9])|-|[\x00-\x1f_]"',
        r'r"[^\w\s]|[\x00-\x1f_]"',
        f"{SEMANTIC_JUDGES}::TestNormalForm",
    ),
    Mutant(
        "semantic: adjusted Rand without chance",
        "calcore/semantic/agreement.py",
        "2 * (both * pairs - of_a * of_b) / most",
        "2 * both * pairs / most",
        f"{SEMANTIC_JUDGES}::TestAgreement",
    ),
    Mutant(
        "semantic: a class is graded by its first text",
        "calcore/semantic/judging.py",
        "counts.most_common(1)[0][0]",
        "next(iter(counts))",
        f"{SEMANTIC_JUDGES}::TestSteps",
    ),
    Mutant(
        "semantic: grades outlive their classes",
        "calcore/semantic/judging.py",
        "class_grades={}, grade=None)",
        "class_grades={})",
        f"{SEMANTIC_JUDGES}::TestSteps",
    ),
    Mutant(
        "semantic: NOT_ATTEMPTED is missing",
        "calcore/semantic/records.py",
        '"NOT_ATTEMPTED": 0,',
        '"NOT_ATTEMPTED": None,',
        SEMANTIC_FILES,
    ),
    Mutant(
        "semantic: the highest class wins ties",
        "calcore/semantic/records.py",
        "tied = sorted(number for",
        "tied = sorted(-number for",
        SEMANTIC_FILES,
    ),
    Mutant(
        "semantic: an id twice is two questions",
        "calcore/semantic/files.py",
        "    if made.id in seen:\n",
        "    if made.id is None:\n",
        SEMANTIC_FILES,
    ),
    Mutant(
        "semantic: agreement of other answers",
        "calcore/semantic/gathering.py",
        "a.answers[i] == b.answers[j]",
        "b.answers[j] is not None",
        SEMANTIC_FILES,
    ),
    Mutant(
        "semantic: failed calls pass for done",
        "calcore/cli/commands/semantic.py",
        "return FAILED if has_failed else DONE",
        "return DONE",
        "tests/test_cli_semantic.py::TestSample",
    ),
    Mutant(
        "semantic: one stream for all questions",
        f"{SEMANTIC}/estimators.py",
        "blake2b(name.encode(",
        'blake2b("".encode(',
        f"{SEMANTIC_KERNELS} {SEMANTIC_TESTS}",
    ),
    Mutant(
        "semantic: seed not used",
        f"{SEMANTIC}/estimators.py",
        "secret = seed.to_bytes(",
        "secret = (0).to_bytes(",
        f"{SEMANTIC_KERNELS} {SEMANTIC_TESTS}",
    ),
    Mutant(
        "semantic: evaluated on all answers",
        SEMANTIC_LOOPS,
        "hits[q, r] = totals[best] - selected[best]",
        "hits[q, r] = totals[best]",
        SEMANTIC_KERNELS,
    ),
    Mutant(
        "semantic: chosen by all answers",
        SEMANTIC_LOOPS,
        "best = _chosen(selected[:k], random_ties, state)",
        "best = _chosen(totals[:k], random_ties, state)",
        SEMANTIC_KERNELS,
    ),
    Mutant(
        "semantic: selection is not shuffled",
        SEMANTIC_LOOPS,
        "code = drawn[i + j]",
        "code = drawn[i]",
        SEMANTIC_KERNELS,
    ),
    Mutant(
        "semantic: answers drawn twice",
        SEMANTIC_LOOPS,
        "drawn[i + j] = drawn[i]\n",
        "pass\n",
        SEMANTIC_KERNELS,
    ),
    Mutant(
        "semantic: places that are favoured",
        SEMANTIC_LOOPS,
        "favoured = _WORDS % size",
        "favoured = _WORDS % _ONE",
        SEMANTIC_KERNELS,
    ),
    Mutant(
        "semantic: larger selection",
        SEMANTIC_LOOPS,
        "for i in range(n // 2):",
        "for i in range((n + 1) // 2):",
        SEMANTIC_KERNELS,
    ),
    Mutant(
        "semantic: ties to the last class",
        SEMANTIC_LOOPS,
        "if counts[k] > counts[best]:",
        "if counts[k] >= counts[best]:",
        SEMANTIC_KERNELS,
    ),
    Mutant(
        "semantic: splits share a stream",
        SEMANTIC_LOOPS,
        "((np.uint64(r) + _ONE) << _HALF_WORD)",
        "(_ONE << _HALF_WORD)",
        SEMANTIC_KERNELS,
    ),
    Mutant(
        "semantic: second class is the first again",
        SEMANTIC_LOOPS,
        "if k != best and counts[k] > runner_up:",
        "if counts[k] > runner_up:",
        SEMANTIC_KERNELS,
    ),
    Mutant(
        "semantic: trials are all answers",
        f"{SEMANTIC}/estimators.py",
        "trials=splits * (samples.sizes - samples.sizes // 2),",
        "trials=splits * (samples.sizes // 2),",
        f"{SEMANTIC_KERNELS} {SEMANTIC_TESTS}",
    ),
    Mutant(
        "semantic: splits graded by the mode",
        f"{SEMANTIC}/estimators.py",
        "split_y = samples.class_grades[places]",
        "split_y = samples.class_grades[places * 0 + (starts + mode)[:, None]]",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: a random tie has the first class's grade",
        f"{SEMANTIC}/estimators.py",
        "return np.where(mode == samples.graded, samples.grades, np.nan)",
        "return samples.grades",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: missing grades count as wrong",
        f"{SEMANTIC}/samples.py",
        "if number == -1.0 or math.isnan(number):\n        return math.nan",
        "if number == -1.0 or math.isnan(number):\n        return 0.0",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: grades that clash",
        f"{SEMANTIC}/samples.py",
        "if clash.size:",
        "if clash.size < 0:",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: grade of fewer answers' mode is that of all",
        f"{SEMANTIC}/samples.py",
        "            grades = table[own + graded]\n",
        "            grades = self.grades[index]\n",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: short questions stay",
        f"{SEMANTIC}/samples.py",
        "long = np.flatnonzero(self.sizes >= n)",
        "long = np.flatnonzero(self.sizes >= n - 1)",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: margin without the other classes",
        f"{SEMANTIC}/margins.py",
        "return self.delta / np.sqrt(self.p / self.trials)",
        "return self.delta * np.sqrt(self.trials)",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: low margins include the edge",
        f"{SEMANTIC}/margins.py",
        "(self.first - self.second) ** 2 < self.trials",
        "(self.first - self.second) ** 2 <= self.trials",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: too few low margins scored",
        f"{SEMANTIC}/scoring.py",
        "if n < _ENOUGH_LOW:",
        "if n < _ENOUGH_LOW - 1:",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: missing statements dropped from sums only",
        f"{SEMANTIC}/scoring.py",
        'counts = samples.sizes - absent if missing == "drop" else samples.sizes',
        "counts = samples.sizes",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: bootstrap sees the order of questions",
        f"{SEMANTIC}/scoring.py",
        "return samples if np.all(order[:-1] < order[1:]) else samples.take(order)",
        "return samples",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: every split certified",
        f"{SEMANTIC}/scoring.py",
        "groups=rows.question if several else None,",
        "groups=None,",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: splits resampled as if independent",
        f"{SEMANTIC}/scoring.py",
        "return compare_rows(rows, groups=groups, **options)",
        "return compare_rows(rows, groups=None, **options)",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: certificates assume a smooth rate",
        f"{SEMANTIC}/scoring.py",
        "variation=math.inf if sampled else None,",
        "variation=1.0,",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "compare: rarer label of the first model only",
        COMPARISON,
        "rarer = min(_of_rarer_label(model.labels, units) for model in each)",
        "rarer = _of_rarer_label(each[0].labels, units)",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: ungraded common questions stay",
        f"{SEMANTIC}/scoring.py",
        "usable &= np.isfinite(confidences.y)",
        "usable &= np.isfinite(confidences.confidence)",
        SEMANTIC_TESTS,
    ),
    Mutant(
        "semantic: law of ties with both classes",
        f"{SEMANTIC}/expected.py",
        "ends = [t if j < chosen else t + 1 for j in others]",
        "ends = [t + 1 for j in others]",
        SEMANTIC_EXPECTED,
    ),
    Mutant(
        "semantic: ties shared by one too few",
        f"{SEMANTIC}/expected.py",
        "(1.0 / np.arange(1, k + 2))",
        "(1.0 / np.maximum(np.arange(k + 1), 1))",
        SEMANTIC_EXPECTED,
    ),
    Mutant(
        "semantic: choice by all answers in the mean of sem2",
        f"{SEMANTIC}/expected.py",
        "size = n // 2 if s is None else",
        "size = n - 1 if s is None else",
        SEMANTIC_EXPECTED,
    ),
    Mutant(
        "semantic: limit at the full sample's margin",
        f"{SEMANTIC}/expected.py",
        "return 0.0 - scale * m * _upper(m * math.sqrt(size / n))",
        "return 0.0 - scale * m * _upper(m)",
        SEMANTIC_EXPECTED,
    ),
    Mutant(
        "semantic: limit without p",
        f"{SEMANTIC}/expected.py",
        "scale = math.sqrt(p / n)",
        "scale = math.sqrt(1.0 / n)",
        SEMANTIC_EXPECTED,
    ),
    Mutant(
        "frames: linear cells without the comparison with their edge",
        FRAMES,
        "_if(s < near / _SIZE, near - 1.0, near)",
        "_if(place < near, near - 1.0, near)",
        FRAME_TESTS,
    ),
    Mutant(
        "frames: division by a constant",
        FRAMES,
        '_SIZE = nw.col("size")',
        "_SIZE = 100800.0",
        FRAME_TESTS,
    ),
    Mutant(
        "frames: a score of 1 in a cell of its own",
        FRAMES,
        '{"j": _if(s >= 1.0, size - 1.0, _if(s < root * root, near - 1.0, near))}',
        '{"j": _if(s < root * root, near - 1.0, near)}',
        FRAME_TESTS,
    ),
    Mutant(
        "frames: logit cells without their last octave",
        FRAMES,
        "for power in (16, 8, 4, 2, 1, 1):",
        "for power in (16, 8, 4, 2, 1):",
        FRAME_TESTS,
    ),
    Mutant(
        "frames: offsets cut off",
        FRAMES,
        "_nearest((place - j) * _UNIT)",
        "_nearest((place - j) * _UNIT - 0.5)",
        FRAME_TESTS,
    ),
    Mutant(
        "frames: minus zero kept",
        FRAMES,
        "_if(raw <= 0.0, 0.0,",
        "_if(raw < 0.0, 0.0,",
        FRAME_TESTS,
    ),
    Mutant(
        "frames: float32 scores with the slack of doubles",
        FRAMES,
        '{"Float32": float(np.float32(1e-6)), "Float16"',
        '{"Float16"',
        FRAME_TESTS,
    ),
    Mutant(
        "frames: NaN as a missing value",
        FRAMES,
        "raw.is_nan().fill_null(False), _NAN, _if(raw.is_null(), _MISSING, wrong)",
        "raw.is_null(), _MISSING, _if(raw.is_nan().fill_null(False), _NAN, wrong)",
        FRAME_TESTS,
    ),
    Mutant(
        "frames: -1 and 0 both negative",
        FRAMES,
        "if _MINUS in kinds and 0 in kinds:",
        "if False:",
        FRAME_TESTS,
    ),
    Mutant(
        "frames: decimals as the engine casts them",
        FRAMES,
        "if 1.0 < scale <= 1e15:",
        "if False:",
        FRAME_TESTS,
    ),
    Mutant(
        "frames: clipped rows not counted",
        FRAMES,
        "n_clipped=int(n[(kind & _CLIPPED) > 0].sum())",
        "n_clipped=0",
        FRAME_TESTS,
    ),
    Mutant(
        "frames: whole numbers beyond 2^53 cast as they are",
        FRAMES,
        "value = _if(value > 2**53, 2**53, value)",
        "value = nw.col(name)",
        FRAME_TESTS,
    ),
    Mutant(
        "cells: more rows than a cell holds are packed",
        CELL_TABLE,
        "if rows.max() > _CELL_ROWS:",
        "if False:",
        TABLES,
    ),
    Mutant(
        "cells: positives beyond the rows",
        CELL_TABLE,
        "(positives < 0) | (positives > rows)",
        "positives < 0",
        TABLES,
    ),
    Mutant(
        "cells: unsorted cells refused",
        CELL_TABLE,
        "matrix[np.argsort(matrix[:, 0])]",
        "matrix",
        TABLES,
    ),
    Mutant(
        "semantic: a reply of another process is not used",
        f"{SEMANTIC}/cache.py",
        "return reply if kept is None else kept",
        "return reply",
        SEMANTIC_CLIENT,
    ),
    Mutant(
        "semantic: equal calls are paid side by side",
        f"{SEMANTIC}/client.py",
        "first = self._under_way.setdefault(key, mine)",
        "first = self._under_way[key] = mine",
        f"{SEMANTIC_CLIENT}::TestCache",
    ),
    Mutant(
        "semantic: damaged replies end the run",
        f"{SEMANTIC}/cache.py",
        "except (ValueError, TypeError, RecursionError):",
        "except RecursionError:",
        f"{SEMANTIC_CLIENT}::TestCache",
    ),
    Mutant(
        "semantic: damaged replies stay",
        f"{SEMANTIC}/cache.py",
        "            if kept is None:\n",
        "            if kept is not None:\n",
        f"{SEMANTIC_CLIENT}::TestCache",
    ),
    Mutant(
        "semantic: faults of the cache are faults of calcore",
        f"{SEMANTIC}/cache.py",
        "class CacheError(ValueError):",
        "class CacheError(Exception):",
        "tests/test_cli_semantic.py::TestSample",
    ),
    Mutant(
        "semantic: paid replies without text are not counted",
        f"{SEMANTIC}/client.py",
        "self._count(calls=1, prompt_tokens=",
        "self._count(prompt_tokens=",
        SEMANTIC_CLIENT,
    ),
    Mutant(
        "semantic: replies without text are tried for ever",
        f"{SEMANTIC}/client.py",
        "_UNUSABLE = 2\n",
        "_UNUSABLE = 9\n",
        SEMANTIC_CLIENT,
    ),
    Mutant(
        "semantic: filtered replies are empty answers",
        f"{SEMANTIC}/client.py",
        "(not text.strip() and finish in _SAID_ALL)",
        "False",
        SEMANTIC_CLIENT,
    ),
    Mutant(
        "semantic: faults of all prompts are met one by one",
        f"{SEMANTIC}/client.py",
        "len(self._failed) >= _FAILURES",
        "False",
        f"{SEMANTIC_CLIENT}::TestRetries",
    ),
    Mutant(
        "semantic: refused prompts end a run that works",
        f"{SEMANTIC}/client.py",
        "futile = not self._has_worked and",
        "futile =",
        f"{SEMANTIC_CLIENT}::TestRetries",
    ),
    Mutant(
        "semantic: the cache does not show that calls work",
        f"{SEMANTIC}/client.py",
        "                    self._has_worked = True\n",
        "                    pass\n",
        f"{SEMANTIC_CLIENT}::TestRetries",
    ),
    Mutant(
        "semantic: refused prompts are sent again",
        f"{SEMANTIC}/client.py",
        "        if refused is not None:\n",
        "        if refused is None and False:\n",
        f"{SEMANTIC_CLIENT}::TestRetries",
    ),
    Mutant(
        "semantic: parts of the key are shown",
        f"{SEMANTIC}/client.py",
        "if packed[i : i + _PART] not in parts:",
        "if True:",
        f"{SEMANTIC_CLIENT}::TestSecrets",
    ),
    Mutant(
        "semantic: answers echo the key",
        f"{SEMANTIC}/client.py",
        'whole = _without(self._key, text.encode("utf-8", "replace").decode())',
        'whole = text.encode("utf-8", "replace").decode()',
        f"{SEMANTIC_CLIENT}::TestSecrets",
    ),
    Mutant(
        "semantic: short keys mask words",
        f"{SEMANTIC}/client.py",
        "    if len(key) < _PART:\n",
        "    if not key:\n",
        f"{SEMANTIC_CLIENT}::TestSecrets",
    ),
    Mutant(
        "semantic: unusable replies of a judge are kept",
        f"{SEMANTIC}/judges/asked.py",
        'self.client.forget(each, subject="")',
        "pass",
        f"{SEMANTIC_JUDGES}::TestAsked",
    ),
    Mutant(
        "semantic: powers are digits",
        f"{SEMANTIC}/judges/exact.py",
        'text = _RAISED.sub(r"^\\1", text)',
        "pass",
        f"{SEMANTIC_JUDGES}::TestNormalForm",
    ),
    Mutant(
        "semantic: an empty reference is one",
        f"{SEMANTIC}/judging.py",
        'if not (each.gold_answer or "").strip():',
        "if each.gold_answer is None:",
        f"{SEMANTIC_JUDGES}::TestSteps",
    ),
    Mutant(
        "semantic: published modes are dropped",
        f"{SEMANTIC}/records.py",
        "key=lambda number: number != self.modal_cluster",
        "key=lambda number: 0",
        SEMANTIC_FILES,
    ),
    Mutant(
        "semantic: published modes are not scored",
        f"{SEMANTIC}/gathering.py",
        "        modes=[each.modes[0] for each in kept],\n",
        "",
        f"{SEMANTIC_FILES}::TestGathering",
    ),
    Mutant(
        "semantic: missing confidences are a column",
        f"{SEMANTIC}/gathering.py",
        "if all(isinstance(each, tuple) and",
        "if all(not isinstance(each, tuple) and",
        f"{SEMANTIC_FILES}::TestGathering",
    ),
    Mutant(
        "semantic: an id in two files is two questions",
        f"{SEMANTIC}/files.py",
        "            elif made.id in before:\n",
        "            elif made.id is None:\n",
        SEMANTIC_FILES,
    ),
    Mutant(
        "semantic: other fields come before columns",
        f"{SEMANTIC}/files.py",
        "return found | row",
        "return row | found",
        SEMANTIC_FILES,
    ),
    Mutant(
        "semantic: NaN in JSON",
        f"{SEMANTIC}/files.py",
        "return value if math.isfinite(value) else None",
        "return value",
        SEMANTIC_FILES,
    ),
    Mutant(
        "semantic: the first file of several",
        "calcore/cli/commands/semantic.py",
        "        yield from read_questions(paths, progress=progress)",
        "        yield from read_questions(paths[0], progress=progress)",
        "tests/test_cli_semantic.py::TestSample",
    ),
    Mutant(
        "semantic: a cache over the output",
        "calcore/cli/commands/semantic.py",
        "        _refuse_shared(self.cache, output, inputs)\n",
        "        pass\n",
        "tests/test_cli_semantic.py::TestSample",
    ),
    Mutant(
        "semantic: nothing is written to a file",
        "calcore/cli/commands/semantic.py",
        "                    raise _NothingDone\n",
        "                    pass\n",
        "tests/test_cli_semantic.py",
    ),
]


def survives(mutant: Mutant, killer: str | None = None) -> tuple[str | None, str | None]:
    """Why the mutation counts as unnoticed, or None; and what noticed it (`killer` is tried first)."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("calcore", "bindings", "tests"):
            shutil.copytree(ROOT / name, copy / name)
        shutil.copy(ROOT / "pyproject.toml", copy)
        path = copy / mutant.file
        source = path.read_text()
        if source.count(mutant.old) != 1:
            return f"its source occurs {source.count(mutant.old)} times in {mutant.file}", None
        path.write_text(source.replace(mutant.old, mutant.new))
        said = ""
        for tests in ([killer] if killer else [], mutant.tests.split()):
            if not tests:
                continue
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
            run = subprocess.run(command, cwd=copy, capture_output=True, text=True)
            failed = re.search(r"^FAILED (.*?)(?: - |$)", run.stdout, re.MULTILINE)
            if run.returncode == 1 and failed:  # a test failed; an error at import would not count
                return None, failed[1]
            said = f"pytest exited {run.returncode}: {run.stdout.strip().splitlines()[-1:]}"
        return said, None


def main(names: list[str]) -> int:
    """Run all mutations, or those named; with --record keep which test notices each, to be tried first."""
    record = "--record" in names
    names = [name for name in names if name != "--record"]
    chosen = [m for m in MUTANTS if not names or m.name in names]
    killers = json.loads(KILLERS.read_text())
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda m: survives(m, killers.get(m.name)), chosen))
    for mutant, (reason, _) in zip(chosen, found, strict=True):
        print(f"caught    {mutant.name}" if reason is None else f"SURVIVED  {mutant.name}: {reason}")
    if record:
        known = {m.name for m in MUTANTS}
        killers |= {m.name: test for m, (_, test) in zip(chosen, found, strict=True) if test}
        kept = {name: test for name, test in sorted(killers.items()) if name in known}
        KILLERS.write_text(json.dumps(kept, indent=1) + "\n")
    survivors = [mutant.name for mutant, (reason, _) in zip(chosen, found, strict=True) if reason is not None]
    print(f"{len(chosen) - len(survivors)} passed, {len(survivors)} failed", *survivors, sep="\n  ")
    return bool(survivors) or not chosen


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
