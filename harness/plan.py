"""Draw the plan of a study: every trial, every pair to be judged, in one seeded order; and forecast it.

Arms are interleaved inside each block of a task and a repeat. Ids, seeds and seats derive from names, not positions, so that
adding an arm changes nothing of another.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from harness import canonical, prompts
from harness.canonical import seed_of
from harness.records import Pair, Trial
from harness.stored import Plan
from harness.study import Loaded, baselines, claim_judge, claim_pools

PROMPT_SPEED = 112.0
"""Prompt tokens a second of the default embedded model on two cores."""
REPLY_SPEED = 23.0
"""Generated tokens a second of the same."""
CHARACTERS_PER_TOKEN = 4.0
FILL = 0.5
"""Share of its token cap that a reply takes on average; the forecast's middle figure."""


def draw(loaded: Loaded) -> Plan:
    """The whole plan."""
    return Plan(tuple(_trials(loaded)), tuple(_calibration(loaded) + _pairs(loaded)))


def lines(plan: Plan) -> bytes:
    """A plan as JSON Lines."""
    return b"".join(canonical.canonical(record) + b"\n" for record in (*plan.trials, *plan.pairs))


def _trials(loaded: Loaded) -> list[Trial]:
    seed = loaded.study.seed
    blocks = [
        (pool.name, task.id, repeat)
        for pool in loaded.pools.values()
        for task in pool.drawn
        for repeat in range(1, loaded.study.repeats + 1)
    ]
    blocks.sort(key=lambda block: seed_of(seed, "block", *block))
    trials: list[Trial] = []
    for pool, task, repeat in blocks:
        arms = [name for name in loaded.arms if pool in loaded.arm_pools(name)]
        arms.sort(key=lambda arm: seed_of(seed, "order", pool, task, repeat, arm))
        trials += [_trial(loaded, arm, pool, task, repeat) for arm in arms]
    return trials


def _trial(loaded: Loaded, arm: str, pool: str, task: str, repeat: int) -> Trial:
    seed = loaded.study.seed
    name = f"{arm}/{pool}/{task}/r{repeat}"
    roster = dict(loaded.arms[arm].seats(seed, task, repeat))
    for inner in _inner(loaded, arm):
        seats = loaded.arms[inner].seats(seed, task, repeat)
        roster |= {f"{inner}:{role}": model for role, model in seats.items()}
    return Trial(id=name, arm=arm, pool=pool, task=task, repeat=repeat, roster=roster, seed=seed_of(seed, name))


def _inner(loaded: Loaded, arm: str) -> list[str]:
    """Every arm that runs inside an arm, at any depth."""
    direct = list(loaded.arms[arm].inner_arms())
    return direct + [deeper for one in direct for deeper in _inner(loaded, one)]


def _pairs(loaded: Loaded) -> list[Pair]:
    pairs: dict[str, Pair] = {}
    for claim in loaded.study.claims:
        judge = claim_judge(loaded.study, claim)
        if judge is None:
            continue
        for pool in claim_pools(loaded, claim):
            for task in loaded.pools[pool].drawn:
                for repeat in range(1, loaded.study.repeats + 1):
                    for baseline in baselines(claim):
                        pair = _pair(judge, pool, task.id, repeat, claim.arm, baseline)
                        pairs[pair.id] = pair
    return sorted(pairs.values(), key=lambda pair: seed_of(loaded.study.seed, "pair", pair.id))


def _pair(judge: str, pool: str, task: str, repeat: int, arm: str, baseline: str) -> Pair:
    where = f"{pool}/{task}/r{repeat}"
    return Pair(
        id=f"{judge}/{arm}-vs-{baseline}/{where}",
        source="trials",
        judge=judge,
        pool=pool,
        task=task,
        repeat=repeat,
        arm=arm,
        baseline=baseline,
        left=f"{arm}/{where}",
        right=f"{baseline}/{where}",
    )


def _calibration(loaded: Loaded) -> list[Pair]:
    return [
        Pair(
            id=f"{judge}/calibration/{labelled.id}",
            source="calibration",
            judge=judge,
            pool=str(loaded.study.judges[judge].calibration),
            task=labelled.id,
            repeat=1,
            arm="left",
            baseline="right",
            left=labelled.left,
            right=labelled.right,
            label=labelled.label,
            stratum=labelled.stratum,
        )
        for judge, drawn in loaded.calibration.items()
        for labelled in drawn
    ]


def order_of(seed: int, pair: Pair) -> tuple[str, str]:
    """In which order the two orders of a pair are read; drawn, so that neither is always first."""
    both = ["left_first", "right_first"]
    random.Random(seed_of(seed, "orders", pair.id)).shuffle(both)
    return both[0], both[1]


class Forecast(NamedTuple):
    """Calls, tokens, money and time of a plan: least, about, and at most (retries apart)."""

    name: str
    calls: tuple[int, int, int]
    tokens_in: tuple[int, int, int]
    tokens_out: tuple[int, int, int]

    def seconds(self) -> tuple[float, float, float]:
        """On the default embedded model, two cores."""
        low, about, high = (
            i / PROMPT_SPEED + o / REPLY_SPEED for i, o in zip(self.tokens_in, self.tokens_out, strict=True)
        )
        return low, about, high


def total(name: str, parts: list[Forecast]) -> Forecast:
    """The sum of several forecasts."""

    def add(rows: list[tuple[int, int, int]]) -> tuple[int, int, int]:
        low, about, high = (sum(row[i] for row in rows) for i in range(3))
        return low, about, high

    return Forecast(
        name, add([p.calls for p in parts]), add([p.tokens_in for p in parts]), add([p.tokens_out for p in parts])
    )


def forecast(loaded: Loaded, plan: Plan) -> list[Forecast]:
    """One forecast an arm, one a judge's calibration, one its pairs."""
    rows = [_arm_forecast(loaded, plan, name) for name in loaded.arms]
    for judge, spec in loaded.study.judges.items():
        for source in ("calibration", "trials"):
            chosen = [pair for pair in plan.pairs if pair.judge == judge and pair.source == source]
            rows.append(_judge_forecast(loaded, f"judge {judge}: {source}", chosen, len(spec.models), judge))
    return rows


def _arm_forecast(loaded: Loaded, plan: Plan, name: str) -> Forecast:
    arm, calls, tokens_in, tokens_out = loaded.arms[name], [0, 0, 0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    prompts = {(pool.name, t.id): len(t.prompt) for pool in loaded.pools.values() for t in pool.drawn}
    for trial in (t for t in plan.trials if t.arm == name):
        low_calls, high_calls = arm.calls(loaded.arms)
        for step in arm.steps(loaded.arms):
            model = (
                next(iter(arm.models_of_roles().values())) if step.role not in trial.roster else trial.roster[step.role]
            )
            cap = arm.caps.get(step.role.split(":")[-1]) or loaded.study.models[model].max_tokens
            size = (step.prompt_chars + prompts[trial.pool, trial.task]) / CHARACTERS_PER_TOKEN
            for i, (count, share) in enumerate(((step.low, 0.1), ((step.low + step.high) / 2, FILL), (step.high, 1.0))):
                tokens_in[i] += count * (size + step.sees * cap * share)
                tokens_out[i] += count * cap * share
        calls = [calls[0] + low_calls, calls[1] + round((low_calls + high_calls) / 2), calls[2] + high_calls]
    return Forecast(name, _three(calls), _three(tokens_in), _three(tokens_out))


def _judge_forecast(loaded: Loaded, name: str, pairs: list[Pair], models: int, judge: str) -> Forecast:
    spec = loaded.study.judges[judge]
    cap = spec.max_tokens or loaded.study.models[spec.models[0]].max_tokens
    reply = 1 if spec.method == "logprobs" else cap
    template = len(prompts.load(f"judge_{spec.method}"))
    tokens = [0.0, 0.0, 0.0]
    for pair in pairs:
        for i, share in enumerate((0.3, FILL, 1.0)):
            tokens[i] += 2 * models * (template + _length(loaded, pair) * share) / CHARACTERS_PER_TOKEN
    count = 2 * models * len(pairs)
    most = count if spec.method == "logprobs" else 2 * count
    return Forecast(
        name,
        (0 if pairs and pairs[0].source == "trials" else count, count, most),
        _three(tokens),
        _three([count * reply * share for share in (0.1, FILL, 1.0)]),
    )


def _length(loaded: Loaded, pair: Pair) -> float:
    if pair.source == "calibration":
        return len(pair.left) + len(pair.right) + 200
    longest = max(spec.max_tokens for spec in loaded.study.models.values())
    return 2 * longest * CHARACTERS_PER_TOKEN


def _three(values: list[float] | list[int]) -> tuple[int, int, int]:
    low, about, high = (round(value) for value in values)
    return low, about, high
