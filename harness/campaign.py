"""What the commands do on the spending side: freeze, plan, run. The analysis is called by the command alone, after the seal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from harness import freeze, journal, plan, run, stored, study
from harness import models as model_kinds
from harness.errors import DriftError, FreezeError, ResultsError
from harness.run import Watch
from harness.stored import Plan
from harness.study import Loaded

Say = Callable[[str], None]


class Ready(NamedTuple):
    """A study as it lies in the checkout now: read, checked, its plan drawn, its inputs hashed."""

    loaded: Loaded
    plan: Plan
    inputs: freeze.Inputs

    @property
    def name(self) -> str:
        """The name of the folder that this study freezes to."""
        return stored.fingerprint(self.inputs.hashes)[:12]


def ready(name: str) -> Ready:
    """Read a study and everything that it names.

    Raises:
        StudyError, SetupError: it cannot be run as it stands.
    """
    loaded = study.load(study.find(name))
    model_kinds.check(loaded.study.models, loaded.folder)
    what = plan.draw(loaded)
    return Ready(loaded, what, freeze.gather(loaded, plan.lines(what)))


def warnings(loaded: Loaded, underpowered: list[str]) -> tuple[str, ...]:
    """What a study accepts by name, in sentences that the report prints."""
    found = [f"underpowered, and accepted as such: {text}" for text in underpowered]
    for name, arm in loaded.arms.items():
        reason = getattr(arm, "allow_reduced_independence", None)
        if reason:
            found.append(f"{name}: independence of the roles is reduced ({reason})")
    for name, judge in loaded.study.judges.items():
        if judge.same_family == "labelled":
            found.append(f"judge {name}: may be of the family of the arms that it judges")
    found += [
        f"claim {claim.id}: not compared with a single of each model ({claim.unmatched_reason})"
        for claim in loaded.study.claims
        if claim.unmatched_reason
    ]
    for name, pool in loaded.pools.items():
        if pool.spec.split == "dev":
            found.append(f"{name}: development tasks; a finding on them is for development")
    return tuple(found)


def check_budget(loaded: Loaded) -> None:
    """A cap in money can only be kept where every price is known.

    Raises:
        FreezeError: names the models without a price.
    """
    unpriced = [name for name, price in freeze.prices(loaded.study).items() if price is None]
    if loaded.study.budget.usd is not None and unpriced:
        raise FreezeError(
            f"{loaded.path}: budget.usd: no price is known for {', '.join(unpriced)}, so the cap could not be kept; give "
            "models.<name>.price, or cap calls and tokens_out instead"
        )


def open_runs(results: Path, identity: str) -> list[Path]:
    """Runs of a study that are frozen and not sealed, oldest first."""
    return [folder for folder in folders(results, identity) if not stored.receipts(folder).sealed]


def folders(results: Path, identity: str) -> list[Path]:
    """All runs of a study in a results folder, by the time of their freeze."""
    found = [p.parent for p in (results / identity).glob("*/frozen.json") if not p.parent.name.startswith(".")]
    return sorted(found, key=lambda p: stored.manifest(p).frozen_at)


def prepare(one: Ready, results: Path, underpowered: list[str], *, again: bool, new: bool) -> tuple[Path, bool]:
    """The folder to work in, and whether it holds a run already: an open one of this study, else a new freeze.

    Raises:
        DriftError: an open run was frozen with other inputs; names what moved. FreezeError: see `check_budget`.
    """
    study_id = one.loaded.study.id
    for folder in open_runs(results, study_id):
        if folder.name.partition(".")[0] == one.name:
            freeze.compare(one.loaded, one.inputs, folder)
            return folder, True
        if not new:
            freeze.compare(one.loaded, one.inputs, folder)
    done = freeze.runs_of(results / study_id, one.name)
    if done and not again:
        freeze.compare(one.loaded, one.inputs, done[-1])
        return done[-1], True
    check_budget(one.loaded)
    return (
        freeze.freeze(one.loaded, one.inputs, results, again=again, warnings=warnings(one.loaded, underpowered)),
        False,
    )


def execute(one: Ready, folder: Path, say: Say, watch: Watch, *, close: bool = False) -> str:
    """Fetch what is missing, then bring a frozen run to its seal; returns the root hash.

    Raises:
        SetupError: weights cannot be had. StoppedError: the run stays open, and can be resumed.
    """
    freeze.compare(one.loaded, one.inputs, folder)
    log = stored.receipts(folder)
    if log.sealed:
        return log.root
    model_kinds.prepare(one.loaded.study.models, say)
    try:
        return asyncio.run(run.run(one.loaded, folder, watch, close=close))
    except OSError as error:
        raise ResultsError(
            f"{folder}: {error}; what was written before is safe, start the same command again"
        ) from None


def latest(results: Path, name: str) -> Path:
    """A results folder given by its path, or the latest run of a study given by its id.

    Raises:
        ResultsError: there is none.
    """
    given = Path(name)
    if (given / "frozen.json").is_file():
        return given
    for found in (folders(results, given.name), folders(given.parent, given.name) if given.is_dir() else []):
        if found:
            return found[-1]
    raise ResultsError(
        f"{name}: no run there; give results/<study>/<fingerprint>, or the id of a study that has been run"
    )


def drifted(one: Ready, folder: Path) -> str | None:
    """What differs between a run and the checkout, in words; None: nothing."""
    try:
        freeze.compare(one.loaded, one.inputs, folder)
    except DriftError as error:
        return str(error)
    return None


def status(folder: Path) -> list[str]:
    """Where a run stands, read from its files while another process may be writing."""
    from harness.progress import Progress
    from harness.records import Call, Started

    frozen, what, log = stored.manifest(folder), stored.plan(folder), stored.receipts(folder)
    progress = Progress(what, log.entries)
    ended = {entry.id for entry in log.entries if isinstance(entry, Call)}
    under_way = [entry for entry in log.entries if isinstance(entry, Started) and entry.id not in ended]
    marked = {entry.subject for entry in log.entries if entry.kind == "note" and entry.about == "orphan"}
    lines = [
        f"{frozen.study.id}  {folder}",
        f"frozen    {frozen.frozen_at}",
        f"state     {'sealed, root ' + log.root[:12] if log.sealed else 'open'}",
        f"trials    {sum(progress.done.values())}/{progress.trials}  pairs {progress.judged}/{progress.pairs}",
        *(f"  {cause:<12} {count}" for cause, count in sorted(progress.done.items())),
        f"calls     {progress.calls} ({progress.retries} failed)",
        f"tokens    {progress.said()}",
    ]
    if not log.sealed:
        lines += [
            f"in flight {entry.owner} {entry.purpose} on {entry.model}, attempt {entry.attempt}, since {entry.at}"
            for entry in under_way
            if entry.id not in marked
        ]
        lines.append(f"now       {journal.now()}")
    return lines
