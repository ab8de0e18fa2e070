"""What tests are made of: small studies in a temporary folder, run for real on scripted models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness import campaign, stored
from harness.progress import Progress
from harness.stored import Run

SOLVER = {"solver": {"name": "scripted/skill", "max_tokens": 200}}
ALL_ARMS: dict[str, dict[str, Any]] = {
    "single": {"kind": "single", "roles": {"solver": "solver"}},
    "best3": {"kind": "best_of_k", "k": 3, "roles": {"solver": "solver"}},
    "repair": {"kind": "repair", "max_attempts": 3, "roles": {"solver": "solver"}, "pools": ["countdown"]},
    "reflection": {"kind": "reflection", "angles": ["one?", "two?"], "roles": {"solver": "solver"}},
    "dialectic": {"kind": "dialectic", "max_rounds": 2, "roles": {"proposer": "solver", "reviewer": "solver"}},
    "chain": {"kind": "chain", "seat_models": ["solver"], "allow_reduced_independence": "a test"},
}
"""One of each kind."""


def toml(value: Any) -> str:
    """A value as TOML; dictionaries inline."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(str(k))} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    return json.dumps(value)


def write_study(
    root: Path,
    *,
    name: str = "small",
    arms: dict[str, dict[str, Any]] | None = None,
    pools: list[dict[str, Any]] | None = None,
    models: dict[str, dict[str, Any]] | None = None,
    judges: dict[str, dict[str, Any]] | None = None,
    claims: list[dict[str, Any]] | None = None,
    **more: Any,
) -> Path:
    """A study file under `root`/studies; returns its path."""
    tables: dict[str, Any] = {
        "id": name,
        "question": "Does it help?",
        "seed": 5,
        "pools": pools if pools is not None else [{"family": "countdown", "sample": 4}],
        "models": models or SOLVER,
        "arms": arms if arms is not None else {"single": ALL_ARMS["single"], "best3": ALL_ARMS["best3"]},
        "judges": judges or {},
        "claims": claims or [],
        "analysis": {"underpowered": "accepted"},
        **more,
    }
    path = root / "studies" / name / "study.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key} = {toml(value)}\n" for key, value in tables.items()), encoding="utf-8")
    return path


def claim(arm: str, baseline: str, metric: str = "solved", **more: Any) -> dict[str, Any]:
    """A claim of a study."""
    return {
        "id": f"{arm}-{metric}",
        "text": f"{arm} is better",
        "arm": arm,
        "baseline": baseline,
        "metric": metric,
        **more,
    }


def run_study(path: Path, results: Path, **options: Any) -> Run:
    """Freeze and run a study to its seal; returns what then lies there."""
    folder, _ = campaign.prepare(campaign.ready(str(path)), results, [], again=options.pop("again", False), new=False)
    campaign.execute(campaign.ready(str(path)), folder, _silent, _unseen, **options)
    return stored.load(folder)


def _silent(_: str) -> None: ...


def _unseen(_: Progress) -> None: ...
