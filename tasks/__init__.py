"""Pools of tasks and their checkers. A family is a folder: `tasks.jsonl` (frozen data), `check.py` (pure), `README.md`.

FORMAT                        line, json, code, choice or text
check(task, reading)          -> Checked; None where every task is judged
visible(question, text)       -> Checked: only what the prompt itself states (optional)
right(task), wrong(task, rng) -> answers for scripted models (optional)
"""

from __future__ import annotations

import ast
import importlib.util
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar, get_args

from pydantic import ValidationError

from harness.canonical import seed_of, sha256
from harness.errors import StudyError, nearest
from harness.records import Checked, Format, LabelledPair, Question, Reading, Task

ROOT = Path(__file__).parent
T = TypeVar("T", Task, LabelledPair)


@dataclass(frozen=True)
class Family:
    """A checker with everything that freezes with it."""

    name: str
    format: Format
    check: Callable[[Task, Reading], Checked] | None
    """None: its answers are judged."""
    visible: Callable[[Question, str], Checked] | None
    """What an arm may check: never the reference."""
    right: Callable[[Task], str]
    wrong: Callable[[Task, random.Random], str]
    source_files: tuple[Path, ...]
    """check.py and what it imports beside it."""


def names() -> list[str]:
    """The families that ship in this folder."""
    return sorted(path.parent.name for path in ROOT.glob("*/tasks.jsonl"))


def load_family(folder: Path, check_file: Path | None = None) -> Family:
    """A family from its folder, or from a checker of the user's own.

    Raises:
        StudyError: the checker cannot be imported, or lacks something; names the file and what.
    """
    path = check_file or folder / "check.py"
    sources = _with_imports(path)
    module = _import(path)
    said = getattr(module, "FORMAT", None)
    format: Format | None = next((one for one in get_args(Format) if one == said), None)
    if format is None:
        raise StudyError(f"{path}: FORMAT must be one of {', '.join(get_args(Format))}; it is {said!r}")
    if not hasattr(module, "check"):
        raise StudyError(f"{path}: has no check(task, reading); a family whose answers are judged says check = None")
    return Family(
        name=folder.name if check_file is None else path.stem,
        format=format,
        check=module.check,
        visible=getattr(module, "visible", None),
        right=getattr(module, "right", _plain),
        wrong=getattr(module, "wrong", lambda task, _: _plain(task)),
        source_files=sources,
    )


def _plain(task: Task) -> str:
    return f"Answer: {task.reference}" if task.answer_format in ("line", "choice") else str(task.reference)


def _import(path: Path) -> ModuleType:
    """A checker under a name of its own; its folder is importable while it loads, so that it may bring a module beside it."""
    name = f"fairtrial_check_{path.stem}_{sha256(str(path.resolve()).encode())[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise StudyError(f"{path}: no checker there")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # anybody's code: whatever it raises, the pool cannot be read
        raise StudyError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    return module


def _with_imports(path: Path) -> tuple[Path, ...]:
    """A checker and the files beside it that it imports, at any depth: all of them freeze."""
    found: list[Path] = []
    waiting = [path]
    while waiting:
        current = waiting.pop()
        if current in found or not current.is_file():
            continue
        found.append(current)
        try:
            tree = ast.parse(current.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError) as error:
            raise StudyError(f"{current}: not Python: {error}") from None
        for node in ast.walk(tree):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module]
            waiting += [current.parent / f"{module.split('.')[0]}.py" for module in modules]
    return tuple(found)


def load_tasks(path: Path) -> tuple[Task, ...]:
    """The tasks of a JSON Lines file.

    Raises:
        StudyError: names the file, the line, and what is wrong.
    """
    return _load(path, Task)


def load_pairs(path: Path) -> tuple[LabelledPair, ...]:
    """The labelled pairs of a JSON Lines file.

    Raises:
        StudyError: names the file, the line, and what is wrong.
    """
    return _load(path, LabelledPair)


def _load(path: Path, record: type[T]) -> tuple[T, ...]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None
    if data.startswith(b"\xef\xbb\xbf") or b"\r\n" in data or b"\x00" in data:
        raise StudyError(f"{path}: plain UTF-8 with \\n line ends is wanted; it holds a byte-order mark, \\r\\n or NUL")
    found: dict[str, T] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            one = _parse(line, record, f"{path}:{number}")
            if one.id in found:
                raise StudyError(f"{path}:{number}: the id {one.id!r} is used twice")
            found[one.id] = one
    if not found:
        raise StudyError(f"{path}: holds nothing")
    return tuple(found.values())


def _parse(line: bytes, record: type[T], place: str) -> T:
    try:
        return record.model_validate(json.loads(line))
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        hint = nearest(where, list(record.model_fields)) if fault["type"] == "extra_forbidden" else fault["msg"]
        raise StudyError(f"{place}: {where}: {hint}") from None
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{place}: not a JSON object: {error}") from None


def draw(tasks: list[Task], count: int, seed: int, name: str) -> list[Task]:
    """A seeded sample: each task is ranked by its own hash, so that neither the file's order nor another task matters."""
    return _draw(tasks, count, seed, name)


def draw_pairs(pairs: list[LabelledPair], count: int, seed: int, name: str) -> list[LabelledPair]:
    """A seeded sample of labelled pairs, an equal share of each stratum as far as the count allows."""
    strata = sorted({pair.stratum for pair in pairs})
    ranked = {s: _draw([p for p in pairs if p.stratum == s], len(pairs), seed, name, by_rank=True) for s in strata}
    turns = [ranked[s][i] for i in range(len(pairs)) for s in strata if i < len(ranked[s])]
    return sorted(turns[:count], key=lambda pair: pair.id)


def _draw(items: list[T], count: int, seed: int, name: str, *, by_rank: bool = False) -> list[T]:
    ranked = sorted(items, key=lambda item: (seed_of(seed, "sample", name, item.id), item.id))[:count]
    return ranked if by_rank else sorted(ranked, key=lambda item: item.id)


def question(task: Task) -> Question:
    """What an arm may see of a task."""
    return Question(
        id=f"{task.family}/{task.id}",
        prompt=task.prompt,
        answer_format=task.answer_format,
        facts=task.facts,
        constraints=task.constraints,
        position=task.position,
        given=task.given,
        workspace=task.workspace,
    )
