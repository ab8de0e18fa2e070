"""Every arm against every baseline that a claim names: exploratory, with Benjamini and Hochberg's false discovery rate."""

from __future__ import annotations

from typing import NamedTuple

from analysis import estimate
from analysis.claims import baselines, solved_column
from analysis.dataset import Data
from harness.records import ClaimSpec


class Contrast(NamedTuple):
    """One exploratory comparison."""

    arm: str
    baseline: str
    tasks: int
    point: float
    low: float
    high: float
    level: float
    method: str
    p: float
    p_adjusted: float
    only_arm: tuple[str, ...]
    """Tasks that the arm solved more often than the baseline."""
    only_baseline: tuple[str, ...]


def explore(data: Data, level: float) -> list[Contrast]:
    """Contrasts that no claim makes. Each has an interval of its own; nothing here decides."""
    claimed = {(c.arm, b) for c in data.frozen.study.claims if c.metric == "solved" for b in baselines(c)}
    against = {b for claim in data.frozen.study.claims for b in baselines(claim)} or set(data.frozen.arms)
    found: list[Contrast] = []
    for baseline in sorted(against):
        for arm in data.frozen.arms:
            if arm == baseline or (arm, baseline) in claimed:
                continue
            made = ClaimSpec(id="contrast", text="", arm=arm, baseline=baseline, metric="solved")
            column = solved_column(data, made, baseline)
            if not column.tasks or column.problems:
                continue
            interval = estimate.gaffke(column.low, level=level)
            values = dict(zip(column.tasks, column.low, strict=True))
            found.append(
                Contrast(
                    arm,
                    baseline,
                    len(column.tasks),
                    sum(column.low) / len(column.tasks),
                    interval.low,
                    interval.high,
                    level,
                    interval.method,
                    estimate.gaffke_p(column.low),
                    1.0,
                    tuple(task for task, value in values.items() if value > 0),
                    tuple(task for task, value in values.items() if value < 0),
                )
            )
    if not found:
        return []
    adjusted = estimate.benjamini_hochberg([one.p for one in found])
    return [one._replace(p_adjusted=float(p)) for one, p in zip(found, adjusted, strict=True)]
