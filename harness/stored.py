"""What lies in a results folder, read and checked before anybody uses a byte of it.

    <folder>/frozen.json      the manifest: one line in the journal's envelope, so that it vouches for itself
    <folder>/inputs/          the frozen inputs, each with its hash in the manifest
    <folder>/journal.jsonl    the receipts (journal.jsonl.zst in a published run)
    <folder>/derived/         findings and reports: can be rebuilt, so nothing here is trusted

Nothing stored is ever imported or run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from harness import journal
from harness.canonical import digest, plain, sha256
from harness.errors import DriftError, ResultsError
from harness.records import Frozen, LabelledPair, Pair, Record, Task, Trial

T = TypeVar("T", bound=Record)


class Plan(NamedTuple):
    """What a run is to do: every trial, and every pair to be judged, in the order drawn at plan time."""

    trials: tuple[Trial, ...]
    pairs: tuple[Pair, ...]


class Run(NamedTuple):
    """A results folder, read and checked."""

    folder: Path
    frozen: Frozen
    plan: Plan
    tasks: dict[str, tuple[Task, ...]]
    """Pool -> its tasks that are in the plan or could have been drawn."""
    calibration: dict[str, tuple[LabelledPair, ...]]
    log: journal.Log


def fingerprint(inputs: dict[str, str]) -> str:
    """One SHA-256 over the names and hashes of all frozen inputs."""
    return digest(plain(dict(inputs)))


def manifest(folder: Path) -> Frozen:
    """The manifest of a run, checked against its own hash and fingerprint.

    Raises:
        ResultsError: there is none, or it is damaged.
    """
    path = folder / "frozen.json"
    try:
        line = path.read_bytes()
    except OSError:
        raise ResultsError(
            f"{folder}: no run here: it has no frozen.json (a run's folder is results/<study>/<fingerprint>)"
        ) from None
    _, body = journal.opened(line, "", str(path))
    frozen = _parsed(Frozen, body, str(path))
    if fingerprint(frozen.inputs) != frozen.fingerprint:
        raise ResultsError(f"{path}: the fingerprint does not fit the inputs that it lists")
    return frozen


def genesis(folder: Path) -> str:
    """The hash that a run's journal begins from: SHA-256 of the bytes of frozen.json."""
    return sha256((folder / "frozen.json").read_bytes())


def verify_inputs(folder: Path, frozen: Frozen) -> None:
    """Compare the stored inputs with the manifest.

    Raises:
        DriftError: names every file that was changed, is missing, or was added.
    """
    root = folder / "inputs"
    found = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}
    problems = [f"  inputs/{name}: was added after the freeze" for name in sorted(found - set(frozen.stored))]
    for name, expected in sorted(frozen.stored.items()):
        if name not in found:
            problems.append(f"  inputs/{name}: is missing")
            continue
        actual = sha256((root / name).read_bytes())
        if actual != expected:
            problems.append(f"  inputs/{name}: frozen {expected[:12]}, now {actual[:12]}")
    if problems:
        raise DriftError(
            f"{folder}: stored inputs are not those of the freeze; nothing was done:\n" + "\n".join(problems)
        )


def load(folder: Path) -> Run:
    """A whole run, checked: manifest, stored inputs, journal.

    Raises:
        ResultsError: damaged or not a run. DriftError: stored inputs were changed.
    """
    frozen = manifest(folder)
    verify_inputs(folder, frozen)
    return Run(folder, frozen, plan(folder), tasks(folder), calibration(folder), receipts(folder))


def receipts(folder: Path) -> journal.Log:
    """The journal of a run, plain or packed, checked line by line."""
    plain_path = folder / "journal.jsonl"
    path = plain_path if plain_path.exists() else folder / "journal.jsonl.zst"
    return journal.read(path, genesis(folder))


def plan(folder: Path) -> Plan:
    """The stored plan."""
    trials: list[Trial] = []
    pairs: list[Pair] = []
    path = folder / "inputs" / "plan.jsonl"
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line:
            continue
        place = f"{path}:{number}"
        if b'"kind":"trial"' in line:
            trials.append(_parsed(Trial, line, place))
        else:
            pairs.append(_parsed(Pair, line, place))
    return Plan(tuple(trials), tuple(pairs))


def tasks(folder: Path) -> dict[str, tuple[Task, ...]]:
    """The stored tasks by pool."""
    return {pool: _lines(Task, path) for pool, path in _pools(folder, "pools", "tasks.jsonl").items()}


def calibration(folder: Path) -> dict[str, tuple[LabelledPair, ...]]:
    """The stored labelled pairs by calibration pool."""
    return {pool: _lines(LabelledPair, path) for pool, path in _pools(folder, "calibration", "pairs.jsonl").items()}


def _pools(folder: Path, kind: str, name: str) -> dict[str, Path]:
    root = folder / "inputs" / kind
    return {p.parent.name: p for p in sorted(root.glob(f"*/{name}"))}


def _lines(record: type[T], path: Path) -> tuple[T, ...]:
    return tuple(
        _parsed(record, line, f"{path}:{number}")
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1)
        if line
    )


def _parsed(record: type[T], body: bytes, place: str) -> T:
    try:
        return record.model_validate(json.loads(body))
    except (ValidationError, ValueError, RecursionError) as error:
        raise ResultsError(f"{place}: not a {record.__name__} that this version knows: {error}") from error
