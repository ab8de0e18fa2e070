"""Pack a sealed, audited run into results/published/, where it is committed as evidence."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness import stored
from harness.errors import ResultsError


def publish(folder: Path, published: Path) -> Path:
    """Copy a run with its journal packed and its reports; all of it or nothing. Returns where it lies.

    Raises:
        ResultsError: the run is not sealed, or it is published already.
    """
    import zstandard

    run = stored.load(folder)
    if not run.log.sealed:
        raise ResultsError(f"{folder}: not sealed; a run is published when its plan is done")
    if not (folder / "derived" / "findings.json").is_file():
        raise ResultsError(
            f"{folder}: has no report yet; `fairtrial report` writes it, and it is published with the run"
        )
    target = published / f"{run.frozen.study.id}-{folder.name}"
    if target.exists():
        raise ResultsError(f"{target}: is published already")
    draft = published / f".{target.name}.draft"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    shutil.copyfile(folder / "frozen.json", draft / "frozen.json")
    shutil.copytree(folder / "inputs", draft / "inputs")
    shutil.copytree(folder / "derived", draft / "derived")
    receipts = (folder / "journal.jsonl").read_bytes()
    (draft / "journal.jsonl.zst").write_bytes(zstandard.ZstdCompressor(level=19).compress(receipts))
    stored.load(draft)
    draft.rename(target)
    return target
