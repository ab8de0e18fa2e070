"""Read a study: its file, the pools and arms that it names, and everything about it that can be refused before a freeze."""

from __future__ import annotations

import tomllib
import types
import typing
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

import tasks as task_pools
from harness import arms as arm_kinds
from harness import models as model_kinds
from harness.asking import Arm
from harness.errors import StudyError, nearest
from harness.records import ClaimSpec, GroundTruth, JudgeSpec, LabelledPair, PoolSpec, Study, Task

RATIOS = ("usd", "tokens_out", "calls")


class Pool(NamedTuple):
    """A pool of a study, loaded."""

    name: str
    spec: PoolSpec
    family: task_pools.Family
    all: tuple[Task, ...]
    """Every task of the split: what the sample is drawn from, and what freezes."""
    drawn: tuple[Task, ...]
    truth: GroundTruth


class Loaded(NamedTuple):
    """A study with everything that its file names."""

    study: Study
    path: Path
    arms: dict[str, Arm]
    pools: dict[str, Pool]
    calibration: dict[str, tuple[LabelledPair, ...]]
    """Judge -> its labelled pairs, drawn."""
    calibration_all: dict[str, tuple[LabelledPair, ...]]

    @property
    def folder(self) -> Path:
        """Where the study file lies."""
        return self.path.parent

    def arm_pools(self, arm: str) -> tuple[str, ...]:
        """The pools that an arm runs on."""
        wanted = self.arms[arm].pools
        return tuple(name for name in self.pools if wanted is None or name in wanted)


def find(name: str) -> Path:
    """The study file behind a path, a folder, or the name of a folder in studies/.

    Raises:
        StudyError: there is none.
    """
    given = Path(name)
    for path in (given, given / "study.toml", Path("studies") / name / "study.toml"):
        if path.is_file():
            return path
    known = sorted(p.parent.name for p in Path("studies").glob("*/study.toml"))
    raise StudyError(
        f"{name}: no study there (a study.toml, its folder, or a name in studies/); {nearest(name, known)}"
    )


def load(path: Path) -> Loaded:
    """Read a study file and all that it names.

    Raises:
        StudyError: names the file, the place, and what would be right.
    """
    study = parse(path)
    pools = {pool.name: pool for pool in (_pool(path, study, i, spec) for i, spec in enumerate(study.pools))}
    if len(pools) < len(study.pools):
        raise StudyError(f"{path}: pools: the same pool is named twice")
    arms = {
        name: arm_kinds.build(dict(raw), where=f"{path}: arms.{name}", module_folder=path.parent)
        for name, raw in study.arms.items()
    }
    labelled = {name: _labelled(path, name, judge) for name, judge in study.judges.items() if judge.calibration}
    drawn = {name: _drawn_pairs(path, study, name, pairs) for name, pairs in labelled.items()}
    loaded = Loaded(study, path, arms, pools, drawn, labelled)
    for arm in arms:
        _check_arm(loaded, arm)
    _check_loops(loaded)
    for judge in study.judges:
        _check_judge(loaded, judge)
    ids = [claim.id for claim in study.claims]
    for number, claim in enumerate(study.claims):
        if claim.id in ids[:number]:
            raise StudyError(f"{path}: claims.{number}.id: {claim.id!r} is used twice")
        _check_claim(loaded, claim, f"{path}: claims.{claim.id}")
    return loaded


def parse(path: Path) -> Study:
    """A study file as a record; pools, arms and claims are not looked up yet.

    Raises:
        StudyError: not TOML, or a key or value that is not in the schema, each named.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: not TOML: {error}") from None
    for claim in raw.get("claims", []):
        if isinstance(claim, dict) and claim.get("metric") in RATIOS:
            claim.setdefault("margin", 1.0)
    try:
        study = Study.model_validate(raw)
    except ValidationError as error:
        raise StudyError(explain(error, Study, str(path))) from None
    if path.name == "study.toml" and path.resolve().parent.name != study.id:
        raise StudyError(f"{path}: id: {study.id!r} is not the name of its folder, {path.resolve().parent.name!r}")
    return study


def explain(error: ValidationError, record: type[BaseModel], where: str) -> str:
    """A validation error as one line a fault: file, place, what is wrong, and the nearest right word."""
    lines = []
    for fault in error.errors(include_url=False):
        place = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            known = _keys(record, fault["loc"][:-1])
            hint = nearest(str(fault["loc"][-1]), known)
            lines.append(f"{where}: {place}: unknown key; {hint}")
        elif fault["type"] == "missing":
            lines.append(f"{where}: {place}: is missing")
        elif fault["type"] == "too_short":
            lines.append(f"{where}: {place}: at least one is needed")
        elif fault["type"] == "dict_type":
            lines.append(f"{where}: {place}: a table is wanted, such as [{place}.<name>]")
        elif fault["type"] == "literal_error":
            lines.append(f"{where}: {place}: {fault['input']!r} is not one of {fault['ctx']['expected']}")
        else:
            lines.append(f"{where}: {place}: {fault['msg']} (it is {str(fault['input'])[:60]!r})")
    return "\n".join(lines)


def _keys(record: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys that a record allows at a place below it."""
    current: object = record
    for part in location:
        if isinstance(current, type) and issubclass(current, BaseModel) and part in current.model_fields:
            current = current.model_fields[str(part)].annotation
        current = _element(current)
    current = _element(current)
    return list(current.model_fields) if isinstance(current, type) and issubclass(current, BaseModel) else []


def _element(annotation: object) -> object:
    """The record inside tuple[X, ...], dict[str, X] or X | None."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple:
        return arguments[0]
    if origin is dict:
        return arguments[1]
    if origin in (types.UnionType, typing.Union):
        return next((a for a in arguments if isinstance(a, type) and issubclass(a, BaseModel)), annotation)
    return annotation


# --- pools -----------------------------------------------------------------------------------------------------------


def pool_name(spec: PoolSpec) -> str:
    """How claims and arms call a pool: its family, or the stem of its file."""
    return spec.family or Path(spec.path or "").stem


def _pool(path: Path, study: Study, number: int, spec: PoolSpec) -> Pool:
    where = f"{path}: pools.{number}"
    if (spec.family is None) == (spec.path is None):
        raise StudyError(f"{where}: give either `family` (a folder of tasks/) or `path` (a file beside the study)")
    name = pool_name(spec)
    if spec.family is not None:
        if spec.family not in task_pools.names():
            raise StudyError(f"{where}.family: no family {spec.family!r}; {nearest(spec.family, task_pools.names())}")
        folder = task_pools.ROOT / spec.family
        family, everything = task_pools.load_family(folder), task_pools.load_tasks(folder / "tasks.jsonl")
    else:
        if spec.check is None:
            raise StudyError(f'{where}: a pool by `path` needs its checker too: `check = "....py"` beside the study')
        everything = task_pools.load_tasks(path.parent / str(spec.path))
        family = task_pools.load_family(path.parent, path.parent / spec.check)
    split = tuple(task for task in everything if task.split == spec.split)
    if not split:
        raise StudyError(f"{where}.split: {name} has no task of the split {spec.split!r}")
    if spec.sample is not None and spec.sample > len(split):
        raise StudyError(f"{where}.sample: {spec.sample} of {len(split)} tasks of {name} ({spec.split})")
    drawn = split if spec.sample is None else tuple(task_pools.draw(list(split), spec.sample, study.seed, name))
    truths = {task.ground_truth for task in split}
    if len(truths) > 1:
        raise StudyError(
            f"{where}: {name} mixes kinds of ground truth ({', '.join(sorted(truths))}); make two pools of it"
        )
    truth = truths.pop()
    if family.check is None and truth != "judged":
        raise StudyError(f"{where}: {name} has no check, and its tasks are not judged but {truth}")
    odd = next((task for task in split if task.answer_format != family.format), None)
    if odd is not None:
        raise StudyError(
            f"{where}: {name}/{odd.id} wants {odd.answer_format!r}, and its checker reads {family.format!r}"
        )
    return Pool(name, spec, family, split, drawn, truth)


def _labelled(path: Path, judge: str, spec: JudgeSpec) -> tuple[LabelledPair, ...]:
    name = str(spec.calibration)
    for file in (path.parent / f"{name}.jsonl", task_pools.ROOT / name / "pairs.jsonl"):
        if file.is_file():
            return tuple(task_pools.load_pairs(file))
    known = sorted(p.parent.name for p in task_pools.ROOT.glob("*/pairs.jsonl"))
    raise StudyError(f"{path}: judges.{judge}.calibration: no labelled pairs {name!r}; {nearest(name, known)}")


def _drawn_pairs(path: Path, study: Study, judge: str, pairs: tuple[LabelledPair, ...]) -> tuple[LabelledPair, ...]:
    sample = study.judges[judge].calibration_sample
    if sample is None:
        return pairs
    if sample > len(pairs):
        raise StudyError(f"{path}: judges.{judge}.calibration_sample: {sample} of {len(pairs)} labelled pairs")
    return tuple(task_pools.draw_pairs(list(pairs), sample, study.seed, judge))


# --- checks across the file ------------------------------------------------------------------------------------------


def _check_arm(loaded: Loaded, name: str) -> None:
    arm, where = loaded.arms[name], f"{loaded.path}: arms.{name}"
    if arm.missing_roles():
        raise StudyError(f"{where}.roles: no model plays {', '.join(arm.missing_roles())}; give roles = {{ ... }}")
    for role, model in arm.models_of_roles().items():
        for one in model.split("|"):
            if one not in loaded.study.models:
                raise StudyError(f"{where}.roles.{role}: no model {one!r}; {nearest(one, list(loaded.study.models))}")
    for pool in arm.pools or ():
        if pool not in loaded.pools:
            raise StudyError(f"{where}.pools: no pool {pool!r}; {nearest(pool, list(loaded.pools))}")
    for pool in loaded.arm_pools(name):
        if arm.needs_check() and loaded.pools[pool].family.visible is None:
            raise StudyError(
                f"{where}: {arm.kind} needs a visible check, and the family of {pool} has none; "
                f"name the arm's pools: pools = {_with_check(loaded)}"
            )
        if arm.needs_scoring_check() and loaded.pools[pool].truth == "judged":
            raise StudyError(f"{where}: it uses the scoring check, and {pool} is judged; name the arm's pools")
    refused = arm.refusal({model: _family(loaded.study, model) for model in loaded.study.models})
    if refused:
        raise StudyError(f"{where}: {refused}")
    for inner in arm.inner_arms():
        if inner not in loaded.arms:
            raise StudyError(f"{where}.inner: no arm {inner!r}; {nearest(inner, list(loaded.arms))}")


def _with_check(loaded: Loaded) -> list[str]:
    return [name for name, pool in loaded.pools.items() if pool.family.visible is not None]


def _check_loops(loaded: Loaded) -> None:
    def walk(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise StudyError(f"{loaded.path}: arms: a loop of references: {' -> '.join([*path, name])}")
        for inner in loaded.arms[name].inner_arms():
            walk(inner, (*path, name))

    for name in loaded.arms:
        walk(name, ())


def _check_judge(loaded: Loaded, name: str) -> None:
    judge, where = loaded.study.judges[name], f"{loaded.path}: judges.{name}"
    for model in judge.models:
        if model not in loaded.study.models:
            raise StudyError(f"{where}.models: no model {model!r}; {nearest(model, list(loaded.study.models))}")
    for pool in judge.pools or ():
        if pool not in loaded.pools:
            raise StudyError(f"{where}.pools: no pool {pool!r}; {nearest(pool, list(loaded.pools))}")
    if judge.same_family == "excluded":
        families = {model: _family(loaded.study, model) for model in loaded.study.models}
        used = {m for arm in loaded.arms.values() for group in arm.models_of_roles().values() for m in group.split("|")}
        for model in judge.models:
            shared = sorted(m for m in used if families[m] is not None and families[m] == families[model])
            if shared:
                raise StudyError(
                    f"{where}.same_family: {model} is of the family of {', '.join(shared)}, which arms use; "
                    'take a judge of another family, or set same_family = "labelled", and the report will say so'
                )


def _family(study: Study, model: str) -> str | None:
    spec = study.models[model]
    return spec.family or model_kinds.family_of(spec.name)


def claim_pools(loaded: Loaded, claim: ClaimSpec) -> tuple[str, ...]:
    """The pools that a claim is about: those it names, or every pool where its metric exists for all its arms."""
    named = claim.pools or tuple(loaded.pools)
    sides = (claim.arm, *baselines(claim))
    shared = [pool for pool in named if all(pool in loaded.arm_pools(arm) for arm in sides)]
    return tuple(pool for pool in shared if _has_metric(loaded, claim, pool))


def baselines(claim: ClaimSpec) -> tuple[str, ...]:
    """A claim's baselines, one or several."""
    return (claim.baseline,) if isinstance(claim.baseline, str) else claim.baseline


def claim_judge(study: Study, claim: ClaimSpec) -> str | None:
    """The judge that a preference claim rests on; None for other metrics."""
    if claim.metric != "preference":
        return None
    return claim.judge or (next(iter(study.judges)) if len(study.judges) == 1 else None)


def _has_metric(loaded: Loaded, claim: ClaimSpec, pool: str) -> bool:
    judged = loaded.pools[pool].truth == "judged"
    if claim.metric == "solved":
        return not judged
    if claim.metric == "preference":
        judge = claim_judge(loaded.study, claim)
        return judge is not None and pool in judged_pools(loaded, judge)
    return True


def judged_pools(loaded: Loaded, judge: str) -> tuple[str, ...]:
    """The pools whose answers a judge reads."""
    wanted = loaded.study.judges[judge].pools
    return tuple(n for n, pool in loaded.pools.items() if (pool.truth == "judged" if wanted is None else n in wanted))


def _check_claim(loaded: Loaded, claim: ClaimSpec, where: str) -> None:
    study = loaded.study
    for key, arm in (("arm", claim.arm), *(("baseline", b) for b in baselines(claim))):
        if arm not in loaded.arms:
            raise StudyError(f"{where}.{key}: no arm {arm!r}; {nearest(arm, list(loaded.arms))}")
    if claim.arm in baselines(claim) or not baselines(claim):
        raise StudyError(
            f"{where}: an arm is compared with another arm; here it is {claim.arm} with {claim.baseline!r}"
        )
    for pool in claim.pools or ():
        if pool not in loaded.pools:
            raise StudyError(f"{where}.pools: no pool {pool!r}; {nearest(pool, list(loaded.pools))}")
    if claim.judge is not None and claim.judge not in study.judges:
        raise StudyError(f"{where}.judge: no judge {claim.judge!r}; {nearest(claim.judge, list(study.judges))}")
    if claim.metric == "preference" and claim_judge(study, claim) is None:
        raise StudyError(
            f"{where}: preference needs a judge: " + ("name one of several" if study.judges else "the study has none")
        )
    _check_margin(claim, where)
    pools = claim_pools(loaded, claim)
    missing = [p for p in claim.pools or () if p not in pools]
    if not pools or missing:
        raise StudyError(
            f"{where}: there is no {claim.metric} of {claim.arm} and {', '.join(baselines(claim))} "
            f"on {', '.join(missing) or 'any pool of the study'}: the claim could never be assessed"
        )
    _check_matched(loaded, claim, where)


def _check_margin(claim: ClaimSpec, where: str) -> None:
    if claim.metric in RATIOS and claim.margin < 1:
        raise StudyError(f"{where}.margin: a ratio of 1 (equal) or more, not {claim.margin}")
    if claim.metric not in RATIOS and not 0 <= claim.margin < 1:
        raise StudyError(f"{where}.margin: a difference from 0 to below 1, not {claim.margin}")
    if claim.direction == "equivalent" and claim.margin == (1 if claim.metric in RATIOS else 0):
        raise StudyError(f"{where}.margin: equivalence needs a margin that is wider than no difference at all")


def _check_matched(loaded: Loaded, claim: ClaimSpec, where: str) -> None:
    """An arm of several models must beat each of them alone, or say why it is not asked to."""
    used = {m for group in loaded.arms[claim.arm].models_of_roles().values() for m in group.split("|")}
    if claim.metric in RATIOS or len(used) < 2 or claim.unmatched_reason:
        return
    alone = {
        model
        for b in baselines(claim)
        if loaded.arms[b].kind == "single"
        for model in loaded.arms[b].models_of_roles().values()
    }
    if used - alone:
        raise StudyError(
            f"{where}.baseline: {claim.arm} uses {', '.join(sorted(used))}, so a `single` of each must be among the baselines "
            f"(missing: {', '.join(sorted(used - alone))}), or give `unmatched_reason`, which the report prints"
        )
