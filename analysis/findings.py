"""findings.json: everything that a report prints, a function of receipts and frozen rules alone.

One section, `run`, holds what two equal runs may differ in (clocks, root hash, orphans, host). In the others values within
[-1, 1] have nine decimals, others nine significant digits, so that two machines write the same bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from math import isinf, isnan
from pathlib import Path
from typing import Any, NamedTuple

from analysis import contrasts, estimate, limits, sensitivity, usage
from analysis.claims import RATIOS, Estimated, Judged, judged_claims
from analysis.dataset import Amount, Data, Usage, build
from analysis.pairs import reliability, voices
from harness.errors import DriftError, StudyError
from harness.records import METHOD_VERSIONS, AnalysisSpec, Answered, Failed, Seal
from harness.stored import Run

Json = Any


class Rules(NamedTuple):
    """The analysis rules of one set of findings, and how they differ from the frozen ones."""

    settings: AnalysisSpec
    differences: tuple[str, ...]
    """In words; empty: these are the frozen rules."""


def rules_for(run: Run, file: Path | None, *, exploratory: bool) -> Rules:
    """The frozen rules, or others from a file.

    Raises:
        DriftError: they are not the frozen ones, and `exploratory` was not asked for; names each.
        StudyError: the file is no table of analysis settings.
    """
    frozen = run.frozen.study.analysis
    settings = frozen if file is None else _settings(file, frozen)
    found = [
        f"analysis.{key}: frozen {getattr(frozen, key)}, now {getattr(settings, key)}"
        for key in type(frozen).model_fields
        if getattr(frozen, key) != getattr(settings, key)
    ]
    found += [
        f"method {name}: frozen {run.frozen.methods.get(name, 'absent')}, now {METHOD_VERSIONS.get(name, 'absent')}"
        for name in sorted(run.frozen.methods.keys() | METHOD_VERSIONS.keys())
        if run.frozen.methods.get(name) != METHOD_VERSIONS.get(name)
    ]
    if found and not exploratory:
        raise DriftError(
            f"{run.folder}: other analysis rules than the frozen ones; nothing was done:\n  "
            + "\n  ".join(found)
            + "\n"
            "With `--exploratory` they are used, and the report says so on its first line"
        )
    return Rules(settings, tuple(found))


def _settings(file: Path, frozen: AnalysisSpec) -> AnalysisSpec:
    import tomllib

    from pydantic import ValidationError

    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
        return AnalysisSpec.model_validate({**frozen.model_dump(), **raw.get("analysis", raw)})
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{file}: not a TOML file of analysis settings: {error}") from None
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        known = ", ".join(AnalysisSpec.model_fields)
        raise StudyError(
            f"{file}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}; known settings: {known}"
        ) from None


def findings(run: Run, rules: Rules) -> dict[str, Json]:
    """Every section of findings.json, unrounded values rounded, nothing NaN."""
    data = build(run)
    level = rules.settings.level
    judged = judged_claims(data, level)
    parts = [part for claim in judged for part in claim.parts]
    other = sensitivity.rows(data, parts)
    sections = {
        "run": _run(data),
        "study": _study(data, rules),
        "claims": [_claim(claim, other) for claim in judged],
        "contrasts": [row._asdict() for row in contrasts.explore(data, level)],
        "arms": _arms(data, level),
        "outcomes": _outcomes(data),
        "usage": _usage(data),
        "judges": _judges(data, level),
        "sensitivity": [row._asdict() for row in other],
        "power": _power(data, judged, level),
        "limits": limits.sentences(data, judged, rules.differences),
    }
    return {name: _rounded(section) for name, section in sections.items()}


def dumps(found: dict[str, Json]) -> bytes:
    """findings.json: sorted keys, one space of indent, ASCII, a newline at the end."""
    return (json.dumps(found, sort_keys=True, indent=1, allow_nan=False) + "\n").encode("ascii")


def _rounded(value: Json) -> Json:
    if isinstance(value, dict):
        return {str(key): _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    if isinstance(value, float):
        assert not isnan(value), "a number that is none reached the findings"
        if isinf(value):
            return "inf" if value > 0 else "-inf"
        return (round(value, 9) if abs(value) <= 1 else float(f"{value:.9g}")) + 0.0
    return value


# --- sections --------------------------------------------------------------------------------------------------------


def _run(data: Data) -> Json:
    frozen, log = data.frozen, data.run.log
    first = min((call.started_at for call in data.calls), default=None)
    seal = next((entry for entry in log.entries if isinstance(entry, Seal)), None)
    lost = {"calls": len(data.orphans), "tokens_out_at_most": sum(one.max_tokens for one in data.orphans)}
    return {
        "sealed": log.sealed,
        "root": log.root,
        "frozen_at": frozen.frozen_at,
        "first_call_at": first,
        "sealed_at": seal.at if seal else None,
        "seconds_of_calls": round(sum(call.seconds for call in data.calls), 1),
        "orphans": lost,
        "notes": [
            f"{note.at} {note.about}: {note.text}" + (f" ({note.subject})" if note.subject else "")
            for note in data.notes
        ],
        "environment": frozen.environment.model_dump(),
    }


def _study(data: Data, rules: Rules) -> Json:
    frozen = data.frozen
    return {
        "id": frozen.study.id,
        "question": frozen.study.question,
        "fingerprint": frozen.fingerprint,
        "seed": frozen.study.seed,
        "repeats": frozen.study.repeats,
        "level": rules.settings.level,
        "methods": METHOD_VERSIONS,
        "exploratory": list(rules.differences),
        "warnings": list(frozen.warnings),
        "pools": {
            name: {"tasks": frozen.tasks[name], "split": frozen.splits[name], "ground_truth": truth}
            for name, truth in frozen.ground_truth.items()
        },
        "models": {
            name: {
                "name": spec.name,
                "family": frozen.families[name],
                "temperature": spec.temperature,
                "max_tokens": spec.max_tokens,
            }
            for name, spec in frozen.study.models.items()
        },
        "inputs": frozen.inputs,
    }


def _estimated(part: Estimated) -> Json:
    column = part.column
    return {
        "baseline": column.baseline,
        "voice": column.voice,
        "point_low": part.point_low,
        "point_high": part.point_high,
        "low": part.low,
        "high": part.high,
        "level": part.level,
        "method": part.method,
        "p": part.p,
        "tasks": len(column.tasks),
        "decision": part.decision,
        "note": part.note,
        "counts": column.counts,
        "by_task": _by_task(part),
    }


def _by_task(part: Estimated) -> Json:
    column = part.column
    if column.claim.metric in RATIOS:
        return {}
    return {task: [low, high] for task, low, high in zip(column.tasks, column.low, column.high, strict=True)}


def _claim(one: Judged, rows: list[sensitivity.SensitivityRow]) -> Json:
    return {
        **one.claim.model_dump(mode="json"),
        "decision": one.decision,
        "why": one.why,
        "estimates": [_estimated(part) for part in one.parts],
        "flipped_by": [row.assumption for row in rows if row.claim == one.claim.id and row.flips],
    }


def _arms(data: Data, level: float) -> Json:
    """Each arm: what it is, how often it solved, and what it used for a trial."""
    whose = usage.grouped(data, usage.arm_of(data))
    found = {}
    for name, arm in data.frozen.arms.items():
        rows = [row for row in data.rows if row.trial.arm == name]
        checked = [row for row in rows if data.frozen.ground_truth[row.trial.pool] != "judged"]
        solved = sum(int(row.solved()) for row in checked)
        interval = estimate.wilson(solved, len(checked), level) if checked and data.frozen.study.repeats == 1 else None
        found[name] = {
            "kind": arm.kind,
            "labels": list(arm.labels),
            "roles": arm.roles,
            "pools": list(arm.pools),
            "calls_declared": [arm.calls_low, arm.calls_high],
            "trials": len(rows),
            "answered": sum(isinstance(row.outcome, Answered) for row in rows),
            "checked": len(checked),
            "solved": solved,
            "rate": solved / len(checked) if checked else None,
            "rate_low": interval.low if interval else None,
            "rate_high": interval.high if interval else None,
            "by_pool": {
                pool: [
                    sum(int(row.solved()) for row in checked if row.trial.pool == pool),
                    sum(row.trial.pool == pool for row in checked),
                ]
                for pool in arm.pools
                if data.frozen.ground_truth[pool] != "judged"
            },
            "usage": _amounts(whose.get(name, Usage())),
            "per_solved": _per_solved(checked, level),
        }
    return found


def _per_solved(rows: list[Any], level: float) -> Json:
    """Output tokens for one solved task, failures included."""
    tasks: dict[str, list[Any]] = {}
    for row in rows:
        tasks.setdefault(f"{row.trial.pool}/{row.trial.task}", []).append(row)
    if not tasks:
        return None
    low = [sum(row.usage.tokens_out.low for row in group) / len(group) for group in tasks.values()]
    high = [sum(row.usage.tokens_out.high for row in group) / len(group) for group in tasks.values()]
    share = [sum(row.solved() for row in group) / len(group) for group in tasks.values()]
    found = estimate.cost_per_solved(low, high, share, level=level)
    return {"tokens_out": [found.point_low, found.point_high], "low": found.low, "high": found.high, "note": found.note}


def _outcomes(data: Data) -> Json:
    """Every planned trial by arm and cause; and by task, so that a reader sees who solves what the other does not."""
    by_arm: dict[str, dict[str, int]] = {}
    by_task: dict[str, dict[str, list[str]]] = {}
    for row in data.rows:
        word = row.cause or ("pending" if row.outcome is None else "answered")
        arm = by_arm.setdefault(row.trial.arm, {})
        arm[word] = arm.get(word, 0) + 1
        state = "pending" if row.outcome is None else row.cause or _answered(row.outcome)
        by_task.setdefault(f"{row.trial.pool}/{row.trial.task}", {}).setdefault(row.trial.arm, []).append(state)
    failed = [row for row in data.rows if isinstance(row.outcome, Failed)]
    return {
        "planned": len(data.rows),
        "answered": sum(isinstance(row.outcome, Answered) for row in data.rows),
        "failed": len(failed),
        "pending": sum(row.outcome is None for row in data.rows),
        "by_cause": dict(Counter(str(row.cause) for row in failed)),
        "by_arm": by_arm,
        "by_task": by_task,
    }


def _answered(outcome: Answered | Failed) -> str:
    if not isinstance(outcome, Answered) or outcome.passed is None:
        return "answered"
    return "solved" if outcome.passed else "wrong"


def _amount(amount: Amount) -> Json:
    return [amount.low, amount.high]


def _amounts(one: Usage) -> Json:
    return {
        "calls": one.calls,
        "tokens_in": _amount(one.tokens_in),
        "tokens_out": _amount(one.tokens_out),
        "usd": _amount(one.usd),
        "unknown": one.unknown,
    }


def _usage(data: Data) -> Json:
    def table(key: Any) -> Json:
        return {name: _amounts(one) for name, one in usage.grouped(data, key).items()}

    return {
        "total": _amounts(usage.totals(data)["all"]),
        "by_bucket": table(lambda call: call.bucket),
        "by_arm": table(usage.arm_of(data)),
        "by_role": table(lambda call: call.role),
        "by_model": table(lambda call: call.model),
        "faults": dict(Counter(call.fault.symptom.value for call in data.calls if call.fault is not None)),
        "served": {
            name: sorted({str(call.model_served) for call in data.calls if call.model == name})
            for name in data.frozen.study.models
        },
    }


def _judges(data: Data, level: float) -> Json:
    found = []
    for judge in data.frozen.study.judges:
        reads = voices(data, judge)
        for one in reliability(data, judge, level):
            mine = [read for read in reads[one.voice] if read.pair.source == "trials"]
            found.append(
                {
                    **one._asdict(),
                    "pairs_judged": len(mine),
                    "judged_states": dict(Counter(read.state for read in mine)),
                }
            )
    return found


def _power(data: Data, judged: list[Judged], level: float) -> Json:
    """What so many tasks could have decided, from the study's own interval."""
    found = {}
    differences = sum(one.claim.metric not in RATIOS for one in judged)
    for one in judged:
        if one.claim.metric in RATIOS or not one.parts:
            continue
        tasks, repeats = len(one.parts[0].column.tasks), data.frozen.study.repeats
        found[one.claim.id] = {
            "tasks": tasks,
            "repeats": repeats,
            "supportable": estimate.can_be_supported(
                tasks, repeats, direction=one.claim.direction, margin=one.claim.margin, level=level, claims=differences
            ),
            "tallies": [
                list(pair)
                for pair in estimate.decisive_tallies(tasks, level=level, margin=_bar(one), claims=differences)
            ],
            "tallies_alone": [list(pair) for pair in estimate.decisive_tallies(tasks, level=level, margin=_bar(one))],
        }
    return found


def _bar(one: Judged) -> float:
    return -one.claim.margin if one.claim.direction == "not_worse" else one.claim.margin
