"""Freeze a study: fingerprint every input that could move a result, store the inputs, and refuse drift by name.

The fingerprint covers content, never time or place: the study file without budget and concurrency; pools (in any order);
checkers; arms with their sources and prompts; the reader; models with settings and identity; judges; analysis rules; prices
and families. Commit, versions and host are recorded beside it and are no drift.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from harness import arms as arm_kinds
from harness import asking, canonical, journal, reading, stored
from harness import models as model_kinds
from harness.canonical import digest, digest_set, plain, sha256
from harness.errors import DriftError, FreezeError, ResultsError
from harness.records import METHOD_VERSIONS, ArmSummary, Environment, Frozen, LabelledPair, Price, Record, Study, Task
from harness.study import Loaded

PACKAGES = ("litellm", "numpy", "pandas", "scipy", "pydantic", "matplotlib", "xllamacpp")


class Inputs(NamedTuple):
    """All that a freeze covers, as it is now."""

    hashes: dict[str, str]
    """Name of an input -> SHA-256 of its content."""
    files: dict[str, bytes]
    """Path below inputs/ -> bytes to be stored."""


def gather(loaded: Loaded, plan: bytes) -> Inputs:
    """Everything that the fingerprint of a study covers, read now. `plan` is the plan's JSON Lines."""
    hashes = {"study": digest(covered(loaded.study)), "analysis": digest(_analysis(loaded.study)), "plan": sha256(plan)}
    files = {"study.toml": loaded.path.read_bytes(), "plan.jsonl": plan}
    for name, pool in loaded.pools.items():
        hashes[f"pool/{name}"] = digest_set(digest(task) for task in pool.all)
        files[f"pools/{name}/tasks.jsonl"] = _lines(pool.all)
        for source in pool.family.source_files:
            _source(hashes, files, f"check/{name}/{source.name}", source)
    for name, pairs in loaded.calibration_all.items():
        pool_name = str(loaded.study.judges[name].calibration)
        hashes[f"calibration/{pool_name}"] = digest_set(digest(pair) for pair in pairs)
        files[f"calibration/{pool_name}/pairs.jsonl"] = _lines(pairs)
    for label, path in _sources(loaded).items():
        _source(hashes, files, f"source/{label}", path)
    tables = _tables(loaded)
    for name, identity in tables["models"].items():  # type: ignore[union-attr]
        hashes[f"model/{name}"] = digest(identity)
    hashes["prices"], hashes["families"] = digest(tables["prices"]), digest(tables["families"])
    files["tables.json"] = canonical.canonical(tables) + b"\n"
    return Inputs(hashes, files)


def covered(study: Study) -> dict[str, JsonValue]:
    """A study as the fingerprint sees it: without budget and concurrency."""
    return study.model_dump(mode="json", exclude={"budget": True, "models": {"__all__": {"concurrency"}}})


def _analysis(study: Study) -> dict[str, JsonValue]:
    return {"methods": dict(METHOD_VERSIONS), "settings": plain(study.analysis)}


def _tables(loaded: Loaded) -> dict[str, JsonValue]:
    models = loaded.study.models
    return {
        "models": {name: model_kinds.identity(spec) for name, spec in models.items()},
        "prices": {name: plain(price) if price else None for name, price in prices(loaded.study).items()},
        "families": dict(families(loaded.study)),
    }


def prices(study: Study) -> dict[str, Price | None]:
    """Model of the study -> its price row; None: unknown."""
    return {name: model_kinds.price_of(spec) for name, spec in study.models.items()}


def families(study: Study) -> dict[str, str | None]:
    """Model of the study -> its family by the table, or as the study declares it; None: unknown."""
    return {name: spec.family or model_kinds.family_of(spec.name) for name, spec in study.models.items()}


def _sources(loaded: Loaded) -> dict[str, Path]:
    found = {"reading.py": Path(reading.__file__), "asking.py": Path(asking.__file__)}
    for arm in loaded.arms.values():
        found |= arm_kinds.sources(arm)
    if loaded.study.judges:
        room = Path(__file__).parent
        found |= {f"judging/{p.name}": p for p in sorted((room / "judging").glob("*.py"))}
        found |= {f"prompts/{p.name}": p for p in sorted((room / "prompts").glob("judge*.md"))}
    return found


def _source(hashes: dict[str, str], files: dict[str, bytes], name: str, path: Path) -> None:
    data = path.read_bytes()
    hashes[name], files[name] = sha256(data), data


def _lines(records: Iterable[Record]) -> bytes:
    return b"".join(canonical.canonical(record) + b"\n" for record in records)


# --- writing ---------------------------------------------------------------------------------------------------------


def freeze(
    loaded: Loaded, inputs: Inputs, results: Path, *, again: bool = False, warnings: tuple[str, ...] = ()
) -> Path:
    """Write the manifest and the stored inputs of a new run; all of it or nothing.

    Raises:
        FreezeError: this very freeze exists already. ResultsError: the disk refuses.
    """
    frozen = _manifest(loaded, inputs, warnings)
    folder = _folder(results / loaded.study.id, frozen.fingerprint[:12], again)
    draft = folder.with_name(f".{folder.name}.draft.{os.getpid()}")
    try:
        for name, data in inputs.files.items():
            (draft / "inputs" / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / "inputs" / name).write_bytes(data)
        (draft / "frozen.json").write_bytes(journal.envelope("", frozen)[1])
        draft.rename(folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise ResultsError(
            f"{folder}: the freeze cannot be written ({error.strerror}); nothing was left there"
        ) from None
    return folder


def _folder(study: Path, name: str, again: bool) -> Path:
    taken = runs_of(study, name)
    if taken and not again:
        raise FreezeError(f"{taken[-1]}: this study is frozen already, with the same inputs")
    return study / (f"{name}.{len(taken) + 1}" if taken else name)


def runs_of(study: Path, name: str) -> list[Path]:
    """The runs of one fingerprint in a study's results, oldest first: `<name>`, `<name>.2`, ..."""
    folders = [p for p in study.glob(f"{name}*") if (p / "frozen.json").is_file() and p.name.partition(".")[0] == name]
    return sorted(folders, key=lambda p: int(p.name.partition(".")[2] or 1))


def _manifest(loaded: Loaded, inputs: Inputs, warnings: tuple[str, ...]) -> Frozen:
    study = loaded.study
    return Frozen(
        study=study,
        fingerprint=stored.fingerprint(inputs.hashes),
        inputs=inputs.hashes,
        stored={name: sha256(data) for name, data in inputs.files.items()},
        arms={name: summary(loaded, name) for name in loaded.arms},
        prices=prices(study),
        families=families(study),
        methods=dict(METHOD_VERSIONS),
        ground_truth={name: pool.truth for name, pool in loaded.pools.items()},
        splits={name: pool.spec.split for name, pool in loaded.pools.items()},
        tasks={name: len(pool.drawn) for name, pool in loaded.pools.items()},
        warnings=warnings,
        environment=environment(loaded.folder),
        frozen_at=journal.now(),
    )


def summary(loaded: Loaded, name: str) -> ArmSummary:
    """What analysis needs to know of an arm."""
    arm = loaded.arms[name]
    low, high = arm.calls(loaded.arms)
    return ArmSummary(
        kind=arm.kind,
        parameters=arm.model_dump(mode="json"),
        roles=arm.models_of_roles(),
        calls_low=low,
        calls_high=high,
        labels=arm.labels(families(loaded.study)),
        pools=loaded.arm_pools(name),
    )


def environment(folder: Path) -> Environment:
    """Where and with what a run is made: recorded, reported, no drift."""
    return Environment(
        commit=_git(folder, "rev-parse", "HEAD"),
        dirty=_dirty(folder),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        packages={name: metadata.version(name) for name in PACKAGES if _installed(name)},
        host=socket.gethostname(),
    )


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _dirty(folder: Path) -> bool | None:
    status = _git(folder, "status", "--porcelain")
    return None if status is None else bool(status)


# --- comparing -------------------------------------------------------------------------------------------------------


def compare(loaded: Loaded, inputs: Inputs, folder: Path) -> None:
    """Compare the live inputs of a study with a run's freeze, after its stored ones.

    Raises:
        DriftError: names each input that differs, with both hashes; of a pool, the tasks.
    """
    frozen = stored.manifest(folder)
    stored.verify_inputs(folder, frozen)
    if frozen.inputs == inputs.hashes:
        return
    lines = []
    for name in sorted(frozen.inputs.keys() | inputs.hashes.keys()):
        before, now = frozen.inputs.get(name), inputs.hashes.get(name)
        if before == now:
            continue
        lines.append(f"  {name}: frozen {_short(before)}, now {_short(now)}")
        if name.startswith("pool/"):
            lines += _moved_tasks(folder, name.removeprefix("pool/"), loaded)
    raise DriftError(
        f"{folder}: the study has drifted since its freeze at {frozen.frozen_at}; nothing was done:\n"
        + "\n".join(lines)
        + "\nPut it back as it was to go on with this run, or start another one beside it with `--new`"
    )


def _short(hash_: str | None) -> str:
    return hash_[:12] if hash_ else "absent"


def _moved_tasks(folder: Path, name: str, loaded: Loaded) -> list[str]:
    before = _by_id(stored.tasks(folder).get(name, ()))
    now = _by_id(loaded.pools[name].all if name in loaded.pools else ())
    changed = [task for task in sorted(before.keys() | now.keys()) if before.get(task) != now.get(task)]
    return [
        f"    task {name}/{task}: frozen {_short(before.get(task))}, now {_short(now.get(task))}" for task in changed
    ]


def _by_id(tasks: Iterable[Task | LabelledPair]) -> dict[str, str]:
    return {task.id: digest(task) for task in tasks}
