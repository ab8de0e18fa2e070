"""Receipts to rows: one a planned trial, failures and unknown usage kept in. An analyst's frame has these columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import BLAME, Blame
from harness.records import Answered, Call, Failed, Frozen, Note, Outcome, Price, Started, Task, Trial, Verdict
from harness.stored import Run

if TYPE_CHECKING:
    import pandas

COLUMNS: dict[str, str] = {
    "trial": "id of the trial: arm/pool/task/repeat",
    "arm": "arm of the study",
    "pool": "pool of the study",
    "task": "id of the task in its family",
    "cluster": "tasks made from one template share it; the task itself where it has none",
    "repeat": "1, 2, ...",
    "outcome": "answered, failed, or none: the run is not done",
    "cause": "why there is no answer, of the closed set; empty for an answer",
    "blame": "own or infrastructure; empty for an answer",
    "passed": "by the scoring check; None where the pool is judged or the trial failed",
    "strict_passed": "by the scoring check under the strict reading; None likewise",
    "score": "in [0, 1], where the family grades by degree; None elsewhere",
    "calls": "attempts with a receipt, retries included",
    "tokens_in_low": "prompt tokens that receipts tell, all attempts",
    "tokens_in_high": "with what is unknown at its most; infinite: no cap is known",
    "tokens_out_low": "generated tokens that receipts tell, reasoning included",
    "tokens_out_high": "with each unknown call at its token cap",
    "usd_low": "US dollars that receipts tell",
    "usd_high": "with what is unknown at its most; infinite: no cap is known",
    "unknown": "attempts whose usage is not fully known",
    "orphans": "calls that were started and never ended: possibly billed, in none of the amounts",
    "seconds": "wall-clock seconds of the trial in the process that finished it",
}
"""Column of the frame -> meaning and unit."""


class Amount(NamedTuple):
    """A usage with what is known of it: at least `low`, at most `high` (infinite: no cap is known)."""

    low: float = 0.0
    high: float = 0.0

    def __add__(self, other: object) -> Amount:
        assert isinstance(other, Amount)
        return Amount(self.low + other.low, self.high + other.high)

    @property
    def known(self) -> bool:
        """Is it known to the last unit?"""
        return self.low == self.high


class Usage(NamedTuple):
    """What a set of receipts used."""

    calls: int = 0
    tokens_in: Amount = Amount()
    tokens_out: Amount = Amount()
    usd: Amount = Amount()
    unknown: int = 0
    """Receipts whose usage is not fully known."""
    seconds: float = 0.0

    def plus(self, other: Usage) -> Usage:
        """The sum of two."""
        return Usage(*(a + b for a, b in zip(self, other, strict=True)))  # type: ignore[operator]


class Row(NamedTuple):
    """One planned trial."""

    trial: Trial
    task: Task
    outcome: Outcome | None
    usage: Usage
    orphans: int

    @property
    def cause(self) -> str | None:
        """Why it has no answer; None: it has one, or is not done."""
        return self.outcome.cause.value if isinstance(self.outcome, Failed) else None

    @property
    def infrastructure(self) -> bool:
        """Did it fail by nobody's own doing?"""
        return isinstance(self.outcome, Failed) and BLAME[self.outcome.cause] is Blame.infrastructure

    def solved(self, *, strict: bool = False) -> float:
        """1 if it passed; a failure is not solved."""
        if not isinstance(self.outcome, Answered):
            return 0.0
        return float(bool(self.outcome.strict_passed if strict else self.outcome.passed))


class Data(NamedTuple):
    """A run as the analysis sees it."""

    run: Run
    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, ...]
    calls: tuple[Call, ...]
    orphans: tuple[Started, ...]
    notes: tuple[Note, ...]

    @property
    def frozen(self) -> Frozen:
        """The manifest."""
        return self.run.frozen

    def of(self, arm: str, pool: str) -> dict[str, list[Row]]:
        """Task -> rows of one arm in one pool, by repeat."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            if row.trial.arm == arm and row.trial.pool == pool:
                found[row.trial.task].append(row)
        return {task: sorted(rows, key=lambda row: row.trial.repeat) for task, rows in sorted(found.items())}


def build(run: Run) -> Data:
    """Put the receipts of a run in order. Every planned trial has a row."""
    entries = run.log.entries
    calls = tuple(e for e in entries if isinstance(e, Call))
    started = {e.id: e for e in entries if isinstance(e, Started)}
    ended = {call.id for call in calls}
    orphans = tuple(one for one in started.values() if one.id not in ended)
    outcomes = {e.trial: e for e in entries if isinstance(e, Answered | Failed)}
    by_owner: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_owner[call.owner].append(call)
    lost: dict[str, int] = defaultdict(int)
    for one in orphans:
        lost[one.owner] += 1
    tasks = {(pool, task.id): task for pool, held in run.tasks.items() for task in held}
    rows = tuple(
        Row(
            trial,
            tasks[trial.pool, trial.task],
            outcomes.get(trial.id),
            usage_of(by_owner[trial.id], started, run.frozen.prices),
            lost[trial.id],
        )
        for trial in sorted(run.plan.trials, key=lambda trial: trial.id)
    )
    verdicts = tuple(
        sorted((e for e in entries if isinstance(e, Verdict)), key=lambda v: (v.subject, v.model, v.order))
    )
    ordered = tuple(sorted(calls, key=lambda call: (call.owner, call.purpose, call.attempt)))
    return Data(run, rows, verdicts, ordered, orphans, tuple(e for e in entries if isinstance(e, Note)))


def usage_of(calls: Iterable[Call], started: dict[str, Started], prices: dict[str, Price | None]) -> Usage:
    """The sum over receipts; what is unknown enters at its cap, or without end where it has none."""
    total = Usage()
    for call in calls:
        known = call.usage_complete and call.tokens_in is not None and call.tokens_out is not None
        low_in, low_out = float(call.tokens_in or 0), float(call.tokens_out or 0)
        cap = float(started[call.id].max_tokens) if call.id in started else inf
        price = prices.get(call.model)
        total = total.plus(
            Usage(
                1,
                Amount(low_in, low_in if known else inf),
                Amount(low_out, low_out if known else max(low_out, cap)),
                _dollars(call, price),
                int(not known),
                call.seconds,
            )
        )
    return total


def _dollars(call: Call, price: Price | None) -> Amount:
    if call.cost_usd is not None:
        return Amount(call.cost_usd, call.cost_usd)
    free = price is not None and not price.tokens_in and not price.tokens_out and price.tokens_in is not None
    return Amount(0.0, 0.0 if free else inf)


def trials_frame(run: Run) -> pandas.DataFrame:
    """The tidy frame: one row a planned trial, the columns of `COLUMNS`."""
    import pandas

    return pandas.DataFrame([_record(row) for row in build(run).rows], columns=list(COLUMNS))


def _record(row: Row) -> dict[str, object]:
    outcome, usage = row.outcome, row.usage
    answered = outcome if isinstance(outcome, Answered) else None
    return {
        "trial": row.trial.id,
        "arm": row.trial.arm,
        "pool": row.trial.pool,
        "task": row.trial.task,
        "cluster": row.task.cluster or row.trial.task,
        "repeat": row.trial.repeat,
        "outcome": "none" if outcome is None else outcome.kind,
        "cause": row.cause or "",
        "blame": BLAME[outcome.cause].value if isinstance(outcome, Failed) else "",
        "passed": answered.passed if answered else None,
        "strict_passed": answered.strict_passed if answered else None,
        "score": answered.score if answered else None,
        "calls": usage.calls,
        "tokens_in_low": usage.tokens_in.low,
        "tokens_in_high": usage.tokens_in.high,
        "tokens_out_low": usage.tokens_out.low,
        "tokens_out_high": usage.tokens_out.high,
        "usd_low": usage.usd.low,
        "usd_high": usage.usd.high,
        "unknown": usage.unknown,
        "orphans": row.orphans,
        "seconds": outcome.seconds if outcome else None,
    }
