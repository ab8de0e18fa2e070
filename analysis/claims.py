"""The frozen claims against the data: paired differences by task, simultaneous intervals, decisions, and what they rest on.

The unit is the task: repeats and orders of one task move together. A claim with several baselines must hold against each, and
under each voice of a judge's panel (intersection and union); only the simultaneous interval decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from analysis import estimate
from analysis.dataset import Amount, Data, Row
from analysis.pairs import Read, Reliability, reliability, voices
from harness.records import ClaimSpec

RATIOS = ("usd", "tokens_out", "calls")
Decision = Literal["supported", "contradicted", "inconclusive", "not_assessable"]
Value = Callable[[Row], float | None]
"""A trial's outcome as a number; None: it is left out."""


class Column(NamedTuple):
    """One comparison: an arm with one baseline, by one metric, and for a preference by one voice of the judge."""

    claim: ClaimSpec
    baseline: str
    voice: str | None
    tasks: tuple[str, ...]
    """pool/task, sorted."""
    clusters: dict[str, str | None]
    low: tuple[float, ...]
    """Differences, arm minus baseline, with every unresolved pair at -1; or the baseline's least cost."""
    high: tuple[float, ...]
    problems: tuple[str, ...] = ()
    arm_low: tuple[float, ...] = ()
    """For a ratio: the arm's cost; `low` and `high` are the baseline's."""
    arm_high: tuple[float, ...] = ()
    counts: dict[str, int] = {}  # noqa: RUF012 - a default that nobody changes
    """For a preference: pairs by state. For solved: trials solved of the arm and the baseline."""

    @property
    def name(self) -> str:
        """Unique in the study."""
        return "/".join(part for part in (self.claim.id, self.baseline, self.voice) if part)


class Estimated(NamedTuple):
    """A column with its estimate: the point may be a range where something is unknown."""

    column: Column
    point_low: float | None
    point_high: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    p: float | None
    decision: Decision
    note: str | None


class Judged(NamedTuple):
    """A claim with its decision and why."""

    claim: ClaimSpec
    decision: Decision
    why: str
    parts: tuple[Estimated, ...]


def baselines(claim: ClaimSpec) -> tuple[str, ...]:
    """A claim's baselines, one or several."""
    return (claim.baseline,) if isinstance(claim.baseline, str) else claim.baseline


def judge_of(data: Data, claim: ClaimSpec) -> str:
    """The judge that a preference rests on."""
    return claim.judge or next(iter(data.frozen.study.judges))


def pools_of(data: Data, claim: ClaimSpec) -> tuple[str, ...]:
    """The pools that a claim is about: those where its metric exists for all its arms."""
    frozen = data.frozen
    shared = [
        pool
        for pool in claim.pools or tuple(frozen.ground_truth)
        if all(pool in frozen.arms[arm].pools for arm in (claim.arm, *baselines(claim)))
    ]
    if claim.metric == "solved":
        return tuple(pool for pool in shared if frozen.ground_truth[pool] != "judged")
    if claim.metric == "preference":
        wanted = frozen.study.judges[judge_of(data, claim)].pools
        return tuple(p for p in shared if (frozen.ground_truth[p] == "judged" if wanted is None else p in wanted))
    return tuple(shared)


# --- columns ---------------------------------------------------------------------------------------------------------


def solved(row: Row) -> float:
    """The primary value of a trial: a failure is not solved."""
    return row.solved()


def columns(data: Data) -> list[Column]:
    """Every comparison that the frozen claims make."""
    found: list[Column] = []
    for claim in data.frozen.study.claims:
        for baseline in baselines(claim):
            if claim.metric == "solved":
                found.append(solved_column(data, claim, baseline))
            elif claim.metric == "preference":
                found += preference_columns(data, claim, baseline)
            else:
                found.append(ratio_column(data, claim, baseline))
    return found


def _paired(data: Data, claim: ClaimSpec, baseline: str) -> tuple[dict[str, tuple[list[Row], list[Row]]], list[str]]:
    """pool/task -> rows of arm and baseline; and what is not done."""
    found, problems = {}, []
    for pool in pools_of(data, claim):
        arm, base = data.of(claim.arm, pool), data.of(baseline, pool)
        for task in sorted(arm.keys() & base.keys()):
            found[f"{pool}/{task}"] = (arm[task], base[task])
            problems += [row.trial.id for row in (*arm[task], *base[task]) if row.outcome is None]
    return found, problems


def _clusters(pairs: dict[str, tuple[list[Row], list[Row]]]) -> dict[str, str | None]:
    named = {task: arm[0].task.cluster for task, (arm, _) in pairs.items()}
    return {task: f"{task.partition('/')[0]}/{cluster}" if cluster else None for task, cluster in named.items()}


def _unfinished(problems: list[str]) -> tuple[str, ...]:
    return (f"{len(problems)} planned trials have no outcome: the run is not done",) if problems else ()


def mean_value(rows: list[Row], value: Value) -> float | None:
    """The mean over repeats of what counts; None: nothing counts."""
    values = [number for row in rows if (number := value(row)) is not None]
    return sum(values) / len(values) if values else None


def solved_column(
    data: Data, claim: ClaimSpec, baseline: str, arm_value: Value = solved, baseline_value: Value = solved
) -> Column:
    """Paired differences of the share solved; other values than the primary ones are sensitivity rows."""
    pairs, problems = _paired(data, claim, baseline)
    differences = {}
    for task, (arm, base) in pairs.items():
        mine, theirs = mean_value(arm, arm_value), mean_value(base, baseline_value)
        if mine is not None and theirs is not None:
            differences[task] = mine - theirs
    values = tuple(differences.values())
    counts = {
        "arm solved": sum(row.solved() == 1 for arm, _ in pairs.values() for row in arm),
        "arm trials": sum(len(arm) for arm, _ in pairs.values()),
        "baseline solved": sum(row.solved() == 1 for _, base in pairs.values() for row in base),
        "baseline trials": sum(len(base) for _, base in pairs.values()),
    }
    return Column(
        claim,
        baseline,
        None,
        tuple(differences),
        _clusters(pairs),
        values,
        values,
        _unfinished(problems),
        counts=counts,
    )


def ratio_column(data: Data, claim: ClaimSpec, baseline: str) -> Column:
    """Mean cost over repeats of both arms on each task; what is unknown as a range."""
    pairs, problems = _paired(data, claim, baseline)
    sides: list[tuple[float, ...]] = []
    for side in (1, 0):
        amounts = [_mean_amount([_amount(row, claim.metric) for row in both[side]]) for both in pairs.values()]
        sides += [tuple(amount.low for amount in amounts), tuple(amount.high for amount in amounts)]
    return Column(
        claim,
        baseline,
        None,
        tuple(pairs),
        _clusters(pairs),
        sides[0],
        sides[1],
        _unfinished(problems),
        sides[2],
        sides[3],
    )


def _amount(row: Row, metric: str) -> Amount:
    if metric == "calls":
        return Amount(float(row.usage.calls), float(row.usage.calls))
    return row.usage.usd if metric == "usd" else row.usage.tokens_out


def _mean_amount(amounts: list[Amount]) -> Amount:
    return Amount(sum(a.low for a in amounts) / len(amounts), sum(a.high for a in amounts) / len(amounts))


def preference_columns(data: Data, claim: ClaimSpec, baseline: str) -> list[Column]:
    """Net preference by task, a column a voice of the judge."""
    _, problems = _paired(data, claim, baseline)
    found = []
    for voice, reads in voices(data, judge_of(data, claim)).items():
        mine = [r for r in reads if (r.pair.source, r.pair.arm, r.pair.baseline) == ("trials", claim.arm, baseline)]
        found.append(preference_column(data, claim, baseline, voice, mine, _unfinished(problems)))
    return found


def preference_column(
    data: Data, claim: ClaimSpec, baseline: str, voice: str, reads: list[Read], problems: tuple[str, ...] = ()
) -> Column:
    """One voice's column: each task's mean with every unresolved pair at -1, and at +1."""
    by_task: dict[str, list[Read]] = {}
    for one in sorted(reads, key=lambda one: (one.pair.pool, one.pair.task, one.pair.repeat)):
        by_task.setdefault(f"{one.pair.pool}/{one.pair.task}", []).append(one)
    low = tuple(sum(one.bounds[0] for one in group) / len(group) for group in by_task.values())
    high = tuple(sum(one.bounds[1] for one in group) / len(group) for group in by_task.values())
    states = ("win", "loss", "tie", "inconsistent", "abstained", "failed")
    counts = {state: sum(one.state == state for one in reads) for state in states}
    clusters = {f"{pool}/{task.id}": task.cluster for pool, tasks in data.run.tasks.items() for task in tasks}
    named = {task: f"{task.partition('/')[0]}/{clusters[task]}" if clusters[task] else None for task in by_task}
    return Column(claim, baseline, voice, tuple(by_task), named, low, high, problems, counts=counts)


# --- estimates and decisions -----------------------------------------------------------------------------------------


def judged_claims(data: Data, level: float) -> list[Judged]:
    """Every frozen claim with its decision; the level is shared by all of them."""
    made = columns(data)
    ready = [column for column in made if column.tasks]
    differences = [c for c in ready if c.claim.metric not in RATIOS]
    ratios = [c for c in ready if c.claim.metric in RATIOS]
    joint, single = estimate.split_level(level, len(differences), len(ratios))
    parts = _differences(differences, joint) + [_ratio(column, single) for column in ratios]
    measured = [one for judge in data.frozen.study.judges for one in reliability(data, judge, level)]
    return [_claim(data, claim, made, parts, measured) for claim in data.frozen.study.claims]


def _bar(claim: ClaimSpec) -> float:
    return {"better": claim.margin, "not_worse": -claim.margin, "equivalent": 0.0}[claim.direction]


def _differences(made: list[Column], level: float) -> list[Estimated]:
    if not made:
        return []
    clusters: dict[str, str | None] = {}
    for column in made:
        clusters |= column.clusters
    found = estimate.simultaneous(
        {c.name: c.low for c in made},
        {c.name: c.tasks for c in made},
        {c.name: _bar(c.claim) for c in made},
        level=level,
        columns_high={c.name: c.high for c in made},
        clusters=clusters,
    )
    estimates = []
    for column in made:
        one = found[column.name]
        claim = column.claim
        interval = one.interval
        if claim.level is not None and claim.level > one.level_used:
            wide = estimate.preference(column.low, column.high, level=claim.level)
            interval = estimate.Interval(wide.low, wide.high, claim.level, wide.method)
        decision = estimate.decide(claim.direction, claim.margin, interval.low, interval.high, ratio=False)
        count = len(column.tasks)
        estimates.append(
            Estimated(
                column,
                sum(column.low) / count,
                sum(column.high) / count,
                interval.low,
                interval.high,
                interval.level,
                interval.method,
                one.p_adjusted,
                decision,
                interval.note,
            )
        )
    return estimates


def _ratio(column: Column, level: float) -> Estimated:
    claim = column.claim
    used = max(level, claim.level or 0.0)
    found = estimate.cost_ratio(column.low, column.high, column.arm_low, column.arm_high, level=used, name=column.name)
    decision = estimate.decide(claim.direction, claim.margin, found.low, found.high, ratio=True)
    return Estimated(
        column, found.point_low, found.point_high, found.low, found.high, used, found.method, None, decision, found.note
    )


def _claim(
    data: Data, claim: ClaimSpec, made: list[Column], parts: list[Estimated], measured: list[Reliability]
) -> Judged:
    own = tuple(part for part in parts if part.column.claim.id == claim.id)
    failing = _gates(data, claim, [column for column in made if column.claim.id == claim.id], measured)
    if failing:
        return Judged(claim, "not_assessable", "; ".join(failing), own)
    decisions = [part.decision for part in own]
    if all(decision == "supported" for decision in decisions):
        return Judged(claim, "supported", _why(own, "supported"), own)
    if "contradicted" in decisions:
        return Judged(claim, "contradicted", _why(own, "contradicted"), own)
    return Judged(claim, "inconclusive", _why(own, "inconclusive"), own)


def _gates(data: Data, claim: ClaimSpec, made: list[Column], measured: list[Reliability]) -> list[str]:
    """Every reason for which the claim cannot be assessed."""
    failing = sorted({problem for column in made for problem in column.problems})
    if not made or not all(column.tasks for column in made):
        failing.append("there is no task to compare on")
    if claim.metric == "preference":
        for one in measured:
            if one.judge == judge_of(data, claim) and not one.passes:
                failing.append(_gate(one))
    return failing


def _gate(one: Reliability) -> str:
    if one.low is None:
        return f"the judge {one.judge} ({one.voice}) was not measured on labelled pairs"
    return (
        f"the judge {one.judge} ({one.voice}) fails its gate: right on {one.right} of {one.pairs} labelled pairs, "
        f"lower limit {one.low:.2f}, and more than {one.threshold:g} was asked"
    )


def _why(parts: tuple[Estimated, ...], decision: Decision) -> str:
    deciding = [part for part in parts if part.decision == decision]
    claim = deciding[0].column.claim
    bar = {"better": claim.margin, "not_worse": -claim.margin, "equivalent": claim.margin}[claim.direction]
    if claim.metric in RATIOS and claim.direction == "not_worse":
        bar = 1 / claim.margin
    where = {
        "supported": "lies beyond" if claim.direction != "equivalent" else "lies inside",
        "contradicted": "lies on the other side of" if claim.direction != "equivalent" else "lies outside",
        "inconclusive": "reaches across",
    }[decision]
    against = ", ".join(sorted({part.column.baseline for part in deciding}))
    return f"the simultaneous interval against {against} {where} the margin of {bar:g}"
