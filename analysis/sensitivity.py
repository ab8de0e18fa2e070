"""What else could be said of the same receipts: other readings of failures and of what is unresolved; the usual bootstrap.

None of these decides a claim. A row whose decision differs from the claim's is flagged, and the report says so at its top.
"""

from __future__ import annotations

from typing import NamedTuple

from analysis import estimate
from analysis.claims import Column, Decision, Estimated, Value, preference_column, solved_column
from analysis.dataset import Data, Row
from analysis.pairs import voices
from harness.errors import Cause


class SensitivityRow(NamedTuple):
    """One other reading of a comparison."""

    column: str
    claim: str
    assumption: str
    point: float | None
    low: float | None
    high: float | None
    tasks: int
    decision: Decision
    flips: bool
    """Does it decide otherwise than the claim's own estimate?"""
    note: str | None = None


def _excluding(*causes: Cause) -> Value:
    return lambda row: None if row.cause in {cause.value for cause in causes} else row.solved()


def _without_failures(row: Row) -> float | None:
    return None if row.cause is not None else row.solved()


def _as_if_infrastructure(value: float) -> Value:
    return lambda row: value if row.infrastructure else row.solved()


def _strict(row: Row) -> float | None:
    return row.solved(strict=True)


CONDITIONING = "conditions on the outcome: what fails may be what is hard"

READINGS: tuple[tuple[str, Value, Value, str | None], ...] = (
    ("strict reader", _strict, _strict, None),
    ("all failures left out", _without_failures, _without_failures, CONDITIONING),
    ("unreadable left out", _excluding(Cause.unreadable), _excluding(Cause.unreadable), CONDITIONING),
    ("truncated left out", _excluding(Cause.truncated), _excluding(Cause.truncated), CONDITIONING),
    ("infrastructure failures, best for the arm", _as_if_infrastructure(1.0), _as_if_infrastructure(0.0), None),
    ("infrastructure failures, worst for the arm", _as_if_infrastructure(0.0), _as_if_infrastructure(1.0), None),
)
"""Name, the arm's value of a trial, the baseline's, and a warning."""


def rows(data: Data, parts: list[Estimated]) -> list[SensitivityRow]:
    """Every other reading of every comparison about differences."""
    found: list[SensitivityRow] = []
    for part in parts:
        if part.column.claim.metric == "solved":
            found += _solved(data, part)
        elif part.column.claim.metric == "preference":
            found += _preference(data, part)
        if part.column.claim.metric in ("solved", "preference"):
            found += _bootstrap(part)
    return found


def _row(part: Estimated, assumption: str, column: Column, note: str | None) -> SensitivityRow:
    claim = part.column.claim
    if not column.tasks:
        return SensitivityRow(
            part.column.name, claim.id, assumption, None, None, None, 0, "inconclusive", False, "no task is left"
        )
    found = estimate.preference(column.low, column.high, level=part.level)
    decision = estimate.decide(claim.direction, claim.margin, found.low, found.high, ratio=False)
    point = found.point_low if found.point_low == found.point_high else None
    return SensitivityRow(
        part.column.name,
        claim.id,
        assumption,
        point,
        found.low,
        found.high,
        len(column.tasks),
        decision,
        decision != part.decision,
        note,
    )


def _solved(data: Data, part: Estimated) -> list[SensitivityRow]:
    found = []
    for name, arm_value, baseline_value, note in READINGS:
        column = solved_column(data, part.column.claim, part.column.baseline, arm_value, baseline_value)
        if (column.tasks, column.low) != (part.column.tasks, part.column.low) or name == "strict reader":
            found.append(_row(part, name, column, note))
    return found


def _preference(data: Data, part: Estimated) -> list[SensitivityRow]:
    claim, column = part.column.claim, part.column
    found = []
    for row in estimate.sensitivity(column.low, column.high, level=part.level, direction=claim.direction):
        decision: Decision = "inconclusive"
        if row.low is not None and row.high is not None:
            decision = estimate.decide(claim.direction, claim.margin, row.low, row.high, ratio=False)
        found.append(
            SensitivityRow(
                column.name,
                claim.id,
                f"unresolved: {row.assumption}",
                row.point,
                row.low,
                row.high,
                row.n_tasks,
                decision,
                decision != part.decision,
            )
        )
    judge = claim.judge or next(iter(data.frozen.study.judges))
    reads = [
        one._replace(state="failed") if one.by_failure else one
        for one in voices(data, judge)[str(column.voice)]
        if (one.pair.source, one.pair.arm, one.pair.baseline) == ("trials", claim.arm, column.baseline)
    ]
    if any(one.by_failure for one in reads):
        other = preference_column(data, claim, column.baseline, str(column.voice), reads)
        found.append(_row(part, "a failed side leaves the pair unresolved", other, None))
    return found


def _bootstrap(part: Estimated) -> list[SensitivityRow]:
    """The intervals that the field knows, exact where the data lie on a lattice; and the exact sign-flip test."""
    column = part.column
    if column.low != column.high:
        return []
    name, claim, count = column.name, column.claim.id, len(column.tasks)
    point = sum(column.low) / count
    percentile = estimate.percentile_bootstrap(column.low, level=part.level, name=name)
    bca, reason = estimate.bca_bootstrap(column.low, level=part.level, name=name)
    flip = estimate.sign_flip(column.low)
    return [
        SensitivityRow(
            name,
            claim,
            "percentile bootstrap",
            point,
            percentile.low,
            percentile.high,
            count,
            part.decision,
            False,
            percentile.note,
        ),
        SensitivityRow(
            name,
            claim,
            "BCa bootstrap",
            point,
            bca.low if bca else None,
            bca.high if bca else None,
            count,
            part.decision,
            False,
            bca.note if bca else reason,
        ),
        SensitivityRow(
            name,
            claim,
            "exact sign-flip test",
            point,
            None,
            None,
            count,
            part.decision,
            False,
            f"p = {flip:.4g}, a test of exchangeability",
        ),
    ]
