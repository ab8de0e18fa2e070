"""Before the money is spent: what each claim of a study can and cannot detect, from the study's own interval."""

from __future__ import annotations

from analysis import estimate
from harness.records import ClaimSpec
from harness.study import RATIOS, Loaded, claim_pools

TASK_VARIANCE = 0.07
"""Variance of the true paired difference between tasks, where no pilot tells: two arms of one model, rarely apart."""
RUN_VARIANCE = 0.24
"""Variance of one paired difference within a task, pass or fail, where no pilot tells."""


def tasks_of(loaded: Loaded, claim: ClaimSpec) -> int:
    """How many tasks a claim is about."""
    return sum(len(loaded.pools[pool].drawn) for pool in claim_pools(loaded, claim))


def hopeless(loaded: Loaded) -> list[str]:
    """A sentence for each claim that no data of the planned size could support.

    Raises:
        FreezeError: there are some, and the study does not say `underpowered = "accepted"`.
    """
    from harness.errors import FreezeError

    differences = [claim for claim in loaded.study.claims if claim.metric not in RATIOS]
    found = []
    for claim in differences:
        count = tasks_of(loaded, claim)
        if not supportable(loaded, claim, count, len(differences)):
            found.append(f"claim {claim.id}: no result on {count} tasks could support it")
    if found and loaded.study.analysis.underpowered == "refused":
        raise FreezeError(
            f"{loaded.path}: "
            + "; ".join(found)
            + '. Take more tasks, a wider margin, or say analysis.underpowered = "accepted", and the report will say so'
        )
    return found


def supportable(loaded: Loaded, claim: ClaimSpec, count: int, claims: int) -> bool:
    """Could a clean sweep on so many tasks support the claim, at the level that several claims leave it?"""
    level = claim.level or loaded.study.analysis.level
    return estimate.can_be_supported(
        count, loaded.study.repeats, direction=claim.direction, margin=claim.margin, level=level, claims=claims
    )


def sentences(loaded: Loaded) -> list[str]:
    """What the study can detect, a sentence a claim, and the tallies that decide; each claim at its share of the level."""
    study, found = loaded.study, []
    claims = sum(claim.metric not in RATIOS for claim in study.claims)
    for claim in study.claims:
        if claim.metric in RATIOS:
            found.append(f"{claim.id}: a ratio of {claim.metric}; its precision depends on the spread of the costs")
            continue
        count, level = tasks_of(loaded, claim), claim.level or study.analysis.level
        if not supportable(loaded, claim, count, claims):
            found.append(f"{claim.id}: {count} tasks cannot support it, whatever they show")
            continue
        text = estimate.sentence(
            count, study.repeats, var_task=TASK_VARIANCE, var_within=RUN_VARIANCE, level=level, claims=claims
        )
        found.append(f"{claim.id}: {text}")
        bar = -claim.margin if claim.direction == "not_worse" else claim.margin
        tallies = estimate.decisive_tallies(count, level=level, margin=bar, claims=claims)
        if tallies and study.repeats == 1:
            said = ", ".join(f"{wins}-{losses}" for wins, losses in tallies[:4])
            found.append(f"  decided by {said} (wins-losses, the rest ties)")
    return found
