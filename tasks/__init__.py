"""Pools of tasks and their families: a folder each, with frozen data and a checker.

`tasks/<family>/` holds tasks.jsonl (data), check.py (what is right), make.py (how the data were made) and README.md. A checker
module is pure and says FORMAT (how an answer is written) and `check(task, reading) -> Checked`; `check = None` says that its
tasks are judged. Where it has them, also

    visible(question, text) -> Checked   what the prompt alone lets one check, from `question.given`, never from the reference
    right(task) -> str                   an answer that passes, for scripted models; absent: the reference in its format
    wrong(task, rng) -> str              one that is well-formed and fails; absent: a plain wrong one

A checker module may import files that lie beside it, at its top; they freeze with it.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, get_args

from pydantic import JsonValue, ValidationError

from harness.canonical import canonical, seed_of, sha256
from harness.errors import StudyError, nearest
from harness.records import Checked, Format, LabelledPair, Question, Reading, Task

ROOT = Path(__file__).parent
"""Where the shipped families lie."""

Check = Callable[[Task, Reading], Checked]
Visible = Callable[[Question, str], Checked]
Right = Callable[[Task], str]
Wrong = Callable[[Task, random.Random], str]
_Line = TypeVar("_Line", Task, LabelledPair)


@dataclass(frozen=True)
class Family:
    """How the answers of one kind of task are written and checked."""

    name: str
    folder: Path
    format: Format
    check: Check | None
    """None: its answers are judged."""
    visible: Visible | None
    """None: its prompts state nothing that can be checked without the reference."""
    right: Right
    wrong: Wrong
    source_files: tuple[Path, ...]
    """The checker and what it imports beside it: all that freezes with it."""


def names() -> list[str]:
    """The shipped families."""
    return sorted(path.parent.name for path in ROOT.glob("*/check.py"))


def question(task: Task) -> Question:
    """What an arm may see of a task: no reference, no ground truth."""
    shown = {name: getattr(task, name) for name in Question.model_fields if name != "id"}
    return Question(id=f"{task.family}/{task.id}", **shown)


# --- drawing ---------------------------------------------------------------------------------------------------------


def draw(tasks: Sequence[Task], count: int, seed: int, name: str) -> list[Task]:
    """A simple random sample without replacement, by id: the tasks whose hash over seed, pool and id is smallest.

    The order in the file does not matter, and a task that is added later displaces at most one of those drawn before.

    Raises:
        StudyError: there are fewer than `count`.
    """
    return _by_id(_ranked(tasks, seed, name), count, name)


def draw_pairs(pairs: Sequence[LabelledPair], count: int, seed: int, name: str) -> list[LabelledPair]:
    """A stratified sample of labelled pairs, by id: the strata take turns, each in the order of its pairs' hashes.

    Raises:
        StudyError: there are fewer than `count`.
    """
    ranked = _ranked(pairs, seed, name)
    turn = {pair.id: sum(one.stratum == pair.stratum for one in ranked[:place]) for place, pair in enumerate(ranked)}
    return _by_id(sorted(ranked, key=lambda pair: (turn[pair.id], pair.stratum)), count, name)


def _ranked(lines: Sequence[_Line], seed: int, name: str) -> list[_Line]:
    return sorted(lines, key=lambda line: (seed_of(seed, name, line.id), line.id))


def _by_id(ranked: list[_Line], count: int, name: str) -> list[_Line]:
    if not 0 <= count <= len(ranked):
        raise StudyError(f"{name}: a sample of {count} was asked for, and there are {len(ranked)}")
    return sorted(ranked[:count], key=lambda line: line.id)


# --- files of tasks --------------------------------------------------------------------------------------------------


def load_tasks(path: Path) -> list[Task]:
    """A pool: JSON Lines of tasks of one family and one format, in the order of the file.

    The family is the name of the folder for a tasks.jsonl, else that of the file without its ending.

    Raises:
        StudyError: names file, line, what is wrong and what would be right.
    """
    tasks = _load(path, Task)
    family = path.resolve().parent.name if path.name == "tasks.jsonl" else path.stem
    for number, task in enumerate(tasks, start=1):
        where = f"{path}:{number}"
        if task.family != family:
            raise StudyError(f"{where}: family {task.family!r}; in this file it must be {family!r}")
        if task.answer_format != tasks[0].answer_format:
            raise StudyError(
                f"{where}: answer_format {task.answer_format!r}, but line 1 says {tasks[0].answer_format!r}; "
                "one pool has one format"
            )
        if not task.prompt.strip():
            raise StudyError(f"{where}: prompt: it is empty")
    return tasks


def load_pairs(path: Path) -> list[LabelledPair]:
    """Labelled pairs for a judge's calibration, in the order of the file.

    Raises:
        StudyError: names file, line, what is wrong and what would be right.
    """
    pairs = _load(path, LabelledPair)
    for number, pair in enumerate(pairs, start=1):
        if pair.left == pair.right:
            raise StudyError(f"{path}:{number}: both texts are the same, so no judge can be measured by it")
        if (pair.stratum == "equal") != (pair.label == "tie"):
            raise StudyError(f"{path}:{number}: the label 'tie' and the stratum 'equal' go together")
    return pairs


def _load(path: Path, record: type[_Line]) -> list[_Line]:
    found: list[_Line] = []
    lines: dict[str, int] = {}
    for number, raw in enumerate(_raw_lines(path), start=1):
        where = f"{path}:{number}"
        line = _record(raw, record, where)
        if line.id in lines:
            raise StudyError(f"{where}: id {line.id!r} stands in line {lines[line.id]} already; ids are unique")
        lines[line.id] = number
        found.append(line)
    return found


def _raw_lines(path: Path) -> list[bytes]:
    """The lines of a file; a line ends at a line feed and nowhere else."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise StudyError(f"{path}:1: begins with a byte order mark; save the file as UTF-8 without one")
    lines = data.removesuffix(b"\n").split(b"\n") if data.strip() else []
    if not lines:
        raise StudyError(f"{path}: is empty; it needs one JSON object a line")
    for number, line in enumerate(lines, start=1):
        fault = _line_fault(line)
        if fault:
            raise StudyError(f"{path}:{number}: {fault}")
    return lines


def _line_fault(line: bytes) -> str | None:
    if b"\0" in line:
        return "holds a NUL byte; save the file as UTF-8, and write a NUL inside a text as \\u0000"
    if b"\r" in line:
        return "holds a carriage return (Windows line ends?); end lines with a line feed alone, for example by dos2unix"
    if not line.strip():
        return "is a blank line; remove it"
    return None


def _record(raw: bytes, record: type[_Line], where: str) -> _Line:
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise StudyError(f"{where}: is not UTF-8 (byte {error.start + 1} of the line)") from None
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{where}: is not one JSON object: {error}") from None
    if not isinstance(value, dict):
        raise StudyError(f"{where}: is not one JSON object, but {type(value).__name__}")
    try:
        return record.model_validate(value)
    except ValidationError as error:
        raise StudyError(_explain(error, record, where)) from None


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice in one object")
    return made


def _constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is no JSON number")


def _explain(error: ValidationError, record: type[_Line], where: str) -> str:
    """A validation error as one line a fault, with the nearest right word."""
    lines = []
    for fault in error.errors(include_url=False):
        place = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden":
            what = f"unknown key; {nearest(str(fault['loc'][-1]), list(record.model_fields))}"
        elif fault["type"] == "missing":
            what = "is missing"
        elif fault["type"] == "literal_error":
            what = f"{fault['input']!r} is not one of {fault['ctx']['expected']}"
        else:
            what = f"{fault['msg']} (it is {str(fault['input'])[:60]!r})"
        lines.append(f"{where}: {place}: {what}")
    return "\n".join(lines)


# --- checkers --------------------------------------------------------------------------------------------------------


def load_family(folder: Path, check_file: Path | None = None) -> Family:
    """The family of a folder, or the one that a checker file beside a study describes.

    The module runs from the very bytes that freeze: no compiled copy, no search path, and under a name of its own.

    Raises:
        StudyError: names the file, and what in it is missing or fails.
    """
    file = check_file or folder / "check.py"
    if not file.is_file():
        raise StudyError(f"{file}: is not there; a family needs a checker with FORMAT and check(task, reading)")
    files = _source_files(file)
    module = _execute(file, files)
    format_ = _format(module, file)
    if not hasattr(module, "check"):
        raise StudyError(
            f"{file}: check(task, reading) -> Checked is missing (`check = None` if all of its tasks are judged)"
        )
    found = {name: _callable(module, name, file) for name in ("check", "visible", "right", "wrong")}
    return Family(
        name=folder.name if check_file is None else file.stem,
        folder=folder,
        format=format_,
        check=found["check"],
        visible=found["visible"],
        right=found["right"] or _right,
        wrong=found["wrong"] or _wrong,
        source_files=files,
    )


def _format(module: ModuleType, file: Path) -> Format:
    known: tuple[Format, ...] = get_args(Format)
    value = getattr(module, "FORMAT", None)
    if value is None:
        raise StudyError(f"{file}: FORMAT is missing; one of {', '.join(known)}")
    for name in known:
        if value == name:
            return name
    raise StudyError(f"{file}: FORMAT: {value!r}; {nearest(str(value), list(known))}")


def _callable(module: ModuleType, name: str, file: Path) -> Any:
    value = getattr(module, name, None)
    if value is not None and not callable(value):
        raise StudyError(f"{file}: {name} is {type(value).__name__}, not a function")
    return value


def _source_files(file: Path) -> tuple[Path, ...]:
    """A checker and the files beside it that it imports, directly or by another; what is imported stands first.

    Raises:
        StudyError: a file cannot be read or parsed, imports in a circle, or imports a neighbour inside a function.
    """
    ordered: list[Path] = []

    def visit(path: Path, above: tuple[Path, ...]) -> None:
        if path in above:
            raise StudyError(f"{path}: imports in a circle: {' -> '.join(p.name for p in (*above, path))}")
        if path not in ordered:
            for neighbour in _neighbours(path):
                visit(neighbour, (*above, path))
            ordered.append(path)

    visit(file, ())
    return tuple(ordered)


def _neighbours(path: Path) -> list[Path]:
    tree = _parse(path)
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        where = f"{path}:{node.lineno}"
        if isinstance(node, ast.ImportFrom) and node.level:
            raise StudyError(f"{where}: a relative import; write `from x import ...` for a file x.py beside it")
        modules = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        for neighbour in (path.parent / f"{module}.py" for module in modules):
            if neighbour.is_file() and node not in tree.body:
                raise StudyError(f"{where}: imports {neighbour.name}, a file beside it, in a block; do so at the top")
            if neighbour.is_file():
                found.append(neighbour)
    return found


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), filename=str(path))
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror})") from None
    except SyntaxError as error:
        raise StudyError(f"{path}:{error.lineno or 1}: is not Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise StudyError(f"{path}:1: is not Python: {error}") from None


def _execute(file: Path, files: tuple[Path, ...]) -> ModuleType:
    """Run a checker's files in order; its neighbours bear their plain names only meanwhile, so that two pools cannot mix."""
    neighbours = files[:-1]
    with _kept_apart([path.stem for path in neighbours]):
        for path in neighbours:
            _run(path, path.stem)
        return _run(
            file, f"fairtrial_check_{file.stem}_{sha256(str(file.resolve()).encode() + file.read_bytes())[:16]}"
        )


@contextmanager
def _kept_apart(stems: list[str]) -> Iterator[None]:
    before = {stem: sys.modules.pop(stem) for stem in stems if stem in sys.modules}
    try:
        yield
    finally:
        for stem in stems:
            sys.modules.pop(stem, None)
        sys.modules.update(before)


def _run(path: Path, name: str) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    except Exception as error:  # a checker may be anybody's code
        del sys.modules[name]
        raise StudyError(f"{path}: fails when it is imported: {type(error).__name__}: {error}") from error
    return module


# --- plain answers for scripted models -------------------------------------------------------------------------------


def _right(task: Task) -> str:
    """The reference, written in the task's format."""
    key = task.reference
    if key is None:
        raise StudyError(f"{task.family}/{task.id}: no reference; scripted models need right(task) in its checker")
    text = key if isinstance(key, str) else canonical(key).decode("ascii")
    written = {"line": f"Answer: {text}", "choice": f"Answer: {text}", "code": f"```\n{text}\n```"}
    return written.get(task.answer_format, text)


def _wrong(task: Task, rng: random.Random) -> str:
    """A well-formed answer that is not the reference."""
    letters = [letter for letter in "ABCD" if letter != task.reference]
    written = {
        "line": "Answer: none of these",
        "choice": f"Answer: {rng.choice(letters)}",
        "code": "```\nraise SystemExit\n```",
        "json": "{}",
        "text": "I do not know.",
    }
    return written[task.answer_format]
