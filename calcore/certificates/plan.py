"""Choice of bins and form from scores alone, so that it costs no probability (THEORY 1.7)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calcore.certificates.bins import (
    FEW,
    NOTHING,
    SHIFTS,
    THINNED,
    Bins,
    Cuts,
    Floats,
    Partitions,
    Running,
    Smoothness,
    form_two,
    hidden_mean_deviation,
    shifted,
)
from calcore.kernels.averaging import bare_cells, room
from calcore.kernels.binning import equal_mass_cuts
from calcore.table import Cells

# E|Z| of a standard normal: what noise adds to an absolute error, on average.
_MEAN_ABS = math.sqrt(2.0 / math.pi)


def _noise(rate: Floats, n: float | Floats | NDArray[np.int64]) -> Floats:
    """About E|K / n - rate|, K binomial; at most 2 rate (1 - rate), which counts below one event a bin."""
    variance = rate * (1.0 - rate)
    return np.minimum(_MEAN_ABS * np.sqrt(variance / n), 2.0 * variance)


class Plan(NamedTuple):
    """A binning and a form, and the bound that a calibrated model would get with them."""

    expected: float
    form: str
    cuts: Cuts
    n_bins: int
    atoms: bool = False

    def parts(self, cells: Cells, running: Running, smooth: Smoothness) -> Partitions:
        """The partitions that form 1 averages: shifted ones, unless every bin is a cell of one score."""
        if self.atoms:
            return Partitions((running.rows,), NOTHING)
        return shifted(cells, running, self.n_bins, smooth)


class Planner:
    """Expected bounds under perfect calibration, from scores only, so that choosing costs no probability."""

    def __init__(self, cells: Cells, running: Running, delta: float) -> None:
        self.cells = cells
        self.running = running
        self.rows = int(running.rows[-1])
        self._mean = np.minimum(cells.s / cells.n, 1.0)
        self._several = np.where(cells.hi > cells.lo, cells.n, 0)
        # Sums of products over cells are not written with @, for which BLAS would wake its threads.
        brier = float((cells.s * (1.0 - self._mean)).sum()) / self.rows
        step = -math.log(delta) / self.rows
        self.deviation = math.sqrt(2.0 * brier * step) + step / 3.0

    def price(self, n_bins: int, smooth: Smoothness, limit: float = math.inf) -> Plan | None:
        """The better form with `n_bins` bins; None if it cannot be below `limit`.

        Noise in the labels is stood for by its mean size: in form 1 it adds in quadrature to the spread of
        the scores, in form 2 the rate lies off the mean score by that much. The deviation is the leading part
        of (b).
        """
        cuts = equal_mass_cuts(self.running.rows, n_bins, 0, 1)
        n = np.diff(self.running.rows[cuts]).astype(np.float64)
        s = np.diff(self.running.scores[cuts])
        bins = Bins(cuts, n, n, s, self.cells.lo[cuts[:-1]], self.cells.hi[cuts[1:] - 1])
        center = np.clip(bins.mean_score, 0.0, 1.0)
        noise = _noise(center, n)
        if math.sqrt(THINNED) * float((n * noise).sum()) / self.rows + self.deviation >= limit:
            return None
        spread = np.where(bins.mixed, self._spread(cuts, center), 0.0)
        averaged = n * np.minimum(center, 1.0 - center) > FEW
        hides = bins.mixed & averaged
        if smooth.lipschitz < math.inf:
            hidden = hidden_mean_deviation(n[hides], (4.0 / 3.0 * spread / n)[hides], smooth)
        elif smooth.variation > n_bins:
            hidden = THINNED * hidden_mean_deviation(n[hides], None, smooth)
        else:
            hidden = self._crowding(n_bins, smooth.variation) if hides.any() else 0.0
        error = np.hypot(spread / SHIFTS, math.sqrt(THINNED) * n * noise)
        one = (float(np.where(averaged, error, 2.0 * s * (1.0 - center)).sum()) + hidden) / self.rows
        rate = np.where(center < 0.5, center + noise, center - noise)
        two = sum(form_two(bins, rate, spread, smooth, tolerance=1e-3))
        return Plan(min(one, two) + self.deviation, "1" if one <= two else "2", cuts, n_bins)

    def _spread(self, cuts: NDArray[np.int64], center: Floats) -> Floats:
        """Sum of |cell mean - center| over the rows of each bin, from running totals."""
        rows, scores = self.running.rows, self.running.scores
        first, last = cuts[:-1], cuts[1:]
        middle = np.clip(np.searchsorted(self._mean, center), first, last)
        below = center * (rows[middle] - rows[first]) - (scores[middle] - scores[first])
        above = (scores[last] - scores[middle]) - center * (rows[last] - rows[middle])
        spread: Floats = np.maximum(below + above, 0.0)
        return spread

    def _crowding(self, n_bins: int, variation: float) -> float:
        """What the worst jump costs, and large cells of several scores (see `bin_shares`, `bare_cells`)."""
        size = self.rows / n_bins
        large = np.flatnonzero(self._several > 0.05 * size)
        large = large[size * np.minimum(self._mean[large], 1.0 - self._mean[large]) > FEW]
        n, mean = self._several[large], self._mean[large]
        bare = bare_cells(n, mean, 0.5 * size, variation)
        single = 2.0 * float((n[bare] * mean[bare] * (1.0 - mean[bare])).sum())
        n, mean = np.delete(n, bare), np.delete(mean, bare)
        jump = max(THINNED / 2.0 * size, 0.5 * float(n.max(initial=0)))
        part = np.array([room(rho) for rho in n / size])
        rows = np.where(part > 0.0, part * size, n * THINNED)
        noise = math.sqrt(THINNED) * float((n * (_noise(mean, rows) - _noise(mean, size))).sum())
        return variation * jump + single + noise

    def equal_mass(self, n_bins: int, smooth: Smoothness) -> Plan:
        """The plan of `n_bins` bins of about equal mass."""
        plan = self.price(n_bins, smooth)
        assert plan is not None
        return plan

    def atoms(self) -> Plan | None:
        """Every cell its own bin, if each holds one score value: no bias, no assumption."""
        if np.any(self.cells.hi > self.cells.lo):
            return None
        n, mean = self.cells.n, self._mean
        error = float((n * _noise(mean, n)).sum()) / self.rows
        return Plan(error + self.deviation, "1", np.arange(n.size + 1), n.size, atoms=True)

    def best(self, smooth: Smoothness) -> Plan:
        """Least expected bound over numbers of bins: powers of 4, then ever smaller steps around the best."""
        most = min(self.cells.n.size, math.ceil(32.0 * self.rows ** (1.0 / 3.0)))
        plan, best, seen = self.equal_mass(1, smooth), 1, {1}

        def visit(counts: list[int]) -> None:
            nonlocal plan, best
            for count in counts:
                if 1 <= count <= most and count not in seen:
                    seen.add(count)
                    other = self.price(count, smooth, plan.expected)
                    if other is None:  # the noise alone is too much, and grows with the number of bins
                        break
                    if other.expected < plan.expected:
                        plan, best = other, count

        visit([4**j for j in range(1, most.bit_length() // 2 + 1)])
        for step in (2.0, 2.0**0.5, 2.0**0.25):
            visit([round(best / step), round(best * step)])
        atoms = self.atoms()
        return atoms if atoms is not None and atoms.expected <= plan.expected else plan
