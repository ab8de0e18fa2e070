"""How fast the intervals are, as ratios against scipy.stats.bootstrap in one run: all arms against the first one.

`python -m tests.bench.bench_estimate [--quick]` prints a table. Every pair of times comes from the same minute on the
same machine; the ratio is what travels, the milliseconds do not.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from analysis.estimate import gaffke, percentile_bootstrap

SIZES = ((24, 5), (1_000, 8), (10_000, 8))
DRAWS = 10_000


def contrasts(tasks: int, arms: int, repeats: int = 3) -> NDArray[np.float64]:
    """Pass-fail differences of every arm against the first: shape (arms - 1, tasks)."""
    generator = np.random.default_rng([tasks, arms])
    skill = generator.beta(1, 1, tasks)
    solved = np.array([generator.binomial(repeats, np.clip(skill + 0.03 * arm, 0, 1)) for arm in range(arms)])
    return (solved[1:] - solved[0]) / repeats


def scipy_percentile(table: NDArray[np.float64]) -> list[tuple[float, float]]:
    """The peer, at its defaults but for batches that fit in memory: 10,000 resamples a contrast, vectorised."""
    from scipy.stats import bootstrap

    found = []
    for row in table:
        interval = bootstrap(
            (row,),
            np.mean,
            n_resamples=DRAWS,
            batch=max(1, 5_000_000 // row.size),
            method="percentile",
            rng=np.random.default_rng(1),
        ).confidence_interval
        found.append((float(interval.low), float(interval.high)))
    return found


def exact_percentile(table: NDArray[np.float64]) -> list[tuple[float, float]]:
    """The same interval without draws."""
    return [(found.low, found.high) for found in map(percentile_bootstrap, table)]


def primary(table: NDArray[np.float64]) -> list[tuple[float, float]]:
    """The interval that decides."""
    return [(found.low, found.high) for found in map(gaffke, table)]


def milliseconds(function: Callable[[], object], runs: int) -> float:
    """The best of some runs, after one that does not count."""
    function()
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return 1e3 * best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out the largest size, and time less often")
    quick = parser.parse_args().quick
    print(
        f"{'tasks, arms':>14} {'scipy ms':>10} {'exact ms':>10} {'ratio':>8} {'primary ms':>11} {'ratio':>8}  largest gap"
    )
    for tasks, arms in SIZES[:2] if quick else SIZES:
        table = contrasts(tasks, arms)
        peer = milliseconds(lambda table=table: scipy_percentile(table), 1 if quick or tasks > 1_000 else 3)  # type: ignore[misc]
        exact = milliseconds(lambda table=table: exact_percentile(table), 3 if quick else 20)  # type: ignore[misc]
        ours = milliseconds(lambda table=table: primary(table), 3 if quick else 20)  # type: ignore[misc]
        gap = np.abs(np.subtract(scipy_percentile(table), exact_percentile(table))).max()
        print(
            f"{f'{tasks:,}, {arms}':>14} {peer:10.1f} {exact:10.2f} {peer / exact:7.0f}x {ours:11.2f} {peer / ours:7.0f}x"
            f"  {gap:.4f}"
        )


if __name__ == "__main__":
    main()
