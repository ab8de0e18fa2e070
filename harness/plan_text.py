"""`fairtrial plan` in words: trials by arm and pool, the forecast, and what the study can and cannot detect."""

from __future__ import annotations

from harness import plan
from harness.stored import Plan
from harness.study import Loaded


def lines(loaded: Loaded, what: Plan, power: list[str]) -> list[str]:
    """The plan of a study as lines for a terminal."""
    study = loaded.study
    pools = [
        f"  {name:<18} {len(pool.drawn)} of {len(pool.all)} {pool.spec.split} tasks, ground truth: {pool.truth}"
        for name, pool in loaded.pools.items()
    ]
    return [
        f"{study.id}: {study.question}",
        "",
        "pools",
        *pools,
        "",
        f"{len(what.trials)} trials ({study.repeats} a task), {len(what.pairs)} pairs to judge in both orders",
        "",
        *_table(loaded, what),
        "",
        *_budget(loaded, what),
        "what it can detect",
        *(f"  {sentence}" for sentence in power or ["no claims: nothing to detect"]),
    ]


def _table(loaded: Loaded, what: Plan) -> list[str]:
    rows = [row for row in plan.forecast(loaded, what) if row.calls[2]]
    rows.append(plan.total("all", rows))
    head = f"{'forecast':<26} {'calls':>13} {'tokens in':>16} {'tokens out':>16} {'minutes':>12}"
    return [head, *(_row(row) for row in rows), *_note(loaded)]


def _row(row: plan.Forecast) -> str:
    _, about, high = (seconds / 60 for seconds in row.seconds())
    return (
        f"{row.name:<26} {row.calls[0]:>6}-{row.calls[2]:<6} {row.tokens_in[1]:>7} <{row.tokens_in[2]:<7} "
        f"{row.tokens_out[1]:>7} <{row.tokens_out[2]:<7} {about:>5.1f} <{high:<5.1f}"
    )


def _note(loaded: Loaded) -> list[str]:
    names = {spec.name for spec in loaded.study.models.values()}
    speed = f"time at {plan.PROMPT_SPEED:g} tokens in and {plan.REPLY_SPEED:g} out a second, the 0.5b embedded model on two cores"
    return [f"  about, and at most (<), retries apart; {speed}", f"  models: {', '.join(sorted(names))}"]


def _budget(loaded: Loaded, what: Plan) -> list[str]:
    """Say when the budget is smaller than the forecast."""
    total = plan.total("all", plan.forecast(loaded, what))
    caps = loaded.study.budget
    found = []
    if caps.calls is not None and caps.calls < total.calls[2]:
        found.append(f"  budget.calls = {caps.calls} may stop it: at most {total.calls[2]} calls are forecast")
    if caps.tokens_out is not None and caps.tokens_out < total.tokens_out[2]:
        found.append(f"  budget.tokens_out = {caps.tokens_out} may stop it: at most {total.tokens_out[2]} are forecast")
    return ["budget", *found, ""] if found else []
