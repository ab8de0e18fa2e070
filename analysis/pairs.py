"""From readings to pairs: states, panel rules, the gate, and how far a judge can be believed. Pure: rules can be replayed.

A pair is won, lost or tied only when both orders point at the same text. What is unresolved lies in [-1, +1]: never a tie,
never a loss, never dropped.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Literal, NamedTuple

from analysis import estimate
from analysis.dataset import Data
from harness.errors import BLAME, Blame
from harness.records import Failed, JudgeSpec, Outcome, Pair, Verdict

State = Literal["win", "loss", "tie", "inconsistent", "abstained", "failed"]
RESOLVED: dict[State, float] = {"win": 1.0, "tie": 0.0, "loss": -1.0}
FLIPPED: dict[State, State] = {"win": "loss", "loss": "win"}


class Read(NamedTuple):
    """A pair as one judge model read it."""

    pair: Pair
    model: str
    state: State
    first: bool | None
    """For an inconsistent pair: did it name the first text both times? None: not that."""
    by_failure: bool = False
    """Decided by a side that failed; no judge was called."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The pair's value, arm against baseline; unresolved: [-1, +1]."""
        value = RESOLVED.get(self.state)
        return (-1.0, 1.0) if value is None else (value, value)


def readings(data: Data, judge: str) -> list[Read]:
    """Every pair of a judge, one row a model of the panel."""
    spec = data.frozen.study.judges[judge]
    outcomes = {row.trial.id: row.outcome for row in data.rows}
    by_pair: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in data.verdicts:
        by_pair[verdict.subject, verdict.model].append(verdict)
    pairs = sorted((pair for pair in data.run.plan.pairs if pair.judge == judge), key=lambda pair: pair.id)
    return [read(pair, model, by_pair[pair.id, model], outcomes, spec) for pair in pairs for model in spec.models]


def read(pair: Pair, model: str, verdicts: list[Verdict], outcomes: dict[str, Outcome | None], spec: JudgeSpec) -> Read:
    """The state of one pair under one judge model."""
    if pair.source == "trials":
        left, right = outcomes.get(pair.left), outcomes.get(pair.right)
        if isinstance(left, Failed) or isinstance(right, Failed):
            return Read(pair, model, _by_failure(left, right), None, by_failure=True)
    both = {verdict.order: verdict for verdict in verdicts}
    if len(both) < 2 or not all(verdict.formed for verdict in both.values()):
        return Read(pair, model, "failed", None)
    first, second = both["left_first"], both["right_first"]
    if spec.method == "logprobs":
        return Read(pair, model, _by_probability(first, second, spec.tie_band), _first_by_probability(first, second))
    if "abstain" in (first.choice, second.choice):
        return Read(pair, model, "abstained", None)
    sides = _side(first), _side(second)
    if sides[0] == sides[1]:
        return Read(pair, model, sides[0], None)
    named = {first.choice, second.choice}
    return Read(
        pair,
        model,
        "inconsistent",
        {"first": True, "second": False}.get(str(first.choice)) if len(named) == 1 else None,
    )


def _by_failure(left: Outcome | None, right: Outcome | None) -> State:
    """A side that failed by its own doing loses to an answer, two such tie; infrastructure leaves the pair unresolved."""
    blames = [BLAME[side.cause] if isinstance(side, Failed) else None for side in (left, right)]
    if Blame.infrastructure in blames or left is None or right is None:
        return "failed"
    if blames[0] and blames[1]:
        return "tie"
    return "loss" if blames[0] else "win"


def _side(verdict: Verdict) -> State:
    if verdict.choice == "tie":
        return "tie"
    return "win" if (verdict.choice == "first") == (verdict.order == "left_first") else "loss"


def _by_probability(left_first: Verdict, right_first: Verdict, band: float) -> State:
    """The mean over both orders of the left text's probability, less 1/2; within the band a tie."""
    assert left_first.p_first is not None
    assert right_first.p_first is not None
    score = (left_first.p_first + (1 - right_first.p_first)) / 2 - 0.5
    if abs(score) <= band + 1e-12:
        return "tie"
    return "win" if score > 0 else "loss"


def _first_by_probability(left_first: Verdict, right_first: Verdict) -> bool | None:
    """Do the single orders disagree, and towards the first text?"""
    assert left_first.p_first is not None
    assert right_first.p_first is not None
    high = left_first.p_first > 0.5, right_first.p_first > 0.5
    return high[0] if high[0] == high[1] else None


def panel(reads: list[Read], spec: JudgeSpec) -> list[Read]:
    """One row a pair by the panel's rule; `each` leaves the models apart and is not put together here."""
    by_pair: dict[str, list[Read]] = defaultdict(list)
    for one in reads:
        by_pair[one.pair.id].append(one)
    return [_agreed(group, spec) for _, group in sorted(by_pair.items())]


def _agreed(group: list[Read], spec: JudgeSpec) -> Read:
    states = Counter(one.state for one in group if one.state in RESOLVED)
    need = len(group) if spec.rule == "unanimous" else len(group) // 2 + 1
    top, votes = states.most_common(1)[0] if states else ("failed", 0)
    if votes >= need and sum(states.values()) >= (spec.quorum or 1):
        return group[0]._replace(model="panel", state=top, first=None)
    left: State = "failed" if all(one.state == "failed" for one in group) else "inconsistent"
    return group[0]._replace(model="panel", state=left, first=None)


def voices(data: Data, judge: str) -> dict[str, list[Read]]:
    """Whom a claim must satisfy: every model of the panel under `each`, else the panel as one."""
    spec, reads = data.frozen.study.judges[judge], readings(data, judge)
    if spec.rule == "each" or len(spec.models) == 1:
        return {model: [one for one in reads if one.model == model] for model in spec.models}
    return {"panel": panel(reads, spec)}


# --- how far a judge can be believed ---------------------------------------------------------------------------------


class Reliability(NamedTuple):
    """A judge measured on labelled pairs."""

    judge: str
    voice: str
    pairs: int
    right: int
    states: dict[str, int]
    by_stratum: dict[str, tuple[int, int]]
    """Stratum -> (right, pairs)."""
    accuracy: float | None
    low: float | None
    high: float | None
    inconsistent_first: tuple[int, int]
    """Of the pairs whose orders disagree by naming one place: (the first both times, all)."""
    bias_p: float | None
    """Exact binomial against 1/2; None: no such pair."""
    false_ties: int
    threshold: float
    passes: bool
    """Does the accuracy's lower limit lie above the gate?"""


def reliability(data: Data, judge: str, level: float) -> list[Reliability]:
    """Accuracy with its Clopper-Pearson interval, consistency, position bias, false ties: a row a voice."""
    spec = data.frozen.study.judges[judge]
    found = []
    for voice, reads in voices(data, judge).items():
        labelled = [one for one in reads if one.pair.source == "calibration"]
        hits = [one for one in labelled if one.state == _wanted(one.pair)]
        strata: dict[str, list[Read]] = defaultdict(list)
        for one in labelled:
            strata[str(one.pair.stratum)].append(one)
        share, interval = estimate.accuracy(len(hits), len(labelled), level=level) if labelled else (None, None)
        placed = [one.first for one in reads if one.state == "inconsistent" and one.first is not None]
        found.append(
            Reliability(
                judge,
                voice,
                len(labelled),
                len(hits),
                dict(Counter(one.state for one in labelled)),
                {name: (sum(one in hits for one in group), len(group)) for name, group in sorted(strata.items())},
                share,
                interval.low if interval else None,
                interval.high if interval else None,
                (sum(placed), len(placed)),
                estimate.first_position_bias(sum(placed), len(placed))[1] if placed else None,
                sum(one.state == "tie" and one.pair.label != "tie" for one in labelled),
                spec.gate.accuracy_low,
                interval is not None and interval.low > spec.gate.accuracy_low,
            )
        )
    return found


def _wanted(pair: Pair) -> State:
    return {"left": "win", "right": "loss", "tie": "tie"}[str(pair.label)]  # type: ignore[return-value]
