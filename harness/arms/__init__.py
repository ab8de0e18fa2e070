"""The kinds of arms, and how a study's `[arms.x]` becomes one: built in, or a module of the user's own beside the study."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness import asking, prompts
from harness.arms.best_of_k import BestOfK
from harness.arms.chain import Chain
from harness.arms.dialectic import Dialectic
from harness.arms.reflection import Reflection
from harness.arms.repair import Repair
from harness.arms.single import Single
from harness.asking import Arm
from harness.canonical import sha256
from harness.errors import StudyError, nearest

KINDS: dict[str, type[Arm]] = {
    "single": Single,
    "best_of_k": BestOfK,
    "repair": Repair,
    "reflection": Reflection,
    "dialectic": Dialectic,
    "chain": Chain,
}
"""Every built-in arm by its kind."""


def build(raw: dict[str, Any], *, where: str, module_folder: Path) -> Arm:
    """An arm from its table in a study file; `module` names a file beside the study that holds one of the user's own.

    Raises:
        StudyError: an unknown kind or parameter, or a module that does not hold exactly one arm of this kind.
    """
    raw = dict(raw)
    module, kind = raw.pop("module", None), raw.get("kind")
    if module is not None:
        cls = _own(module_folder / str(module), str(kind), where)
    elif kind in KINDS:
        cls = KINDS[str(kind)]
    else:
        raise StudyError(f"{where}.kind: no arm kind {kind!r}; {nearest(str(kind), list(KINDS))}")
    try:
        arm = cls.model_validate(raw)
    except ValidationError as error:
        raise StudyError("\n".join(_said(fault, cls, where) for fault in error.errors(include_url=False))) from None
    for key in ("roles", "caps"):
        for role in getattr(arm, key):
            if role not in arm.ROLES:
                raise StudyError(f"{where}.{key}.{role}: {arm.kind} has no such role; {nearest(role, list(arm.ROLES))}")
    return arm


def _said(fault: Any, cls: type[Arm], where: str) -> str:
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{where}.{place}: unknown parameter of {cls.__name__}; {nearest(place, list(cls.model_fields))}"
    return f"{where}.{place}: {fault['msg']} (it is {str(fault['input'])[:60]!r})"


def _own(path: Path, kind: str, where: str) -> type[Arm]:
    """The one Arm subclass of a user's module."""
    if not path.is_file():
        raise StudyError(f"{where}.module: no file {path}")
    name = f"fairtrial_arm_{path.stem}_{sha256(str(path.resolve()).encode())[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pydantic looks annotations up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # anybody's code: whatever it raises, the study cannot be read
        raise StudyError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Arm) and value.__module__ == name
    ]
    if len(found) != 1:
        raise StudyError(f"{path}: holds {len(found)} arms; one subclass of harness.asking.Arm is wanted")
    default = found[0].model_fields["kind"].default
    if default != kind:
        raise StudyError(f"{where}.kind: {kind!r}, but the arm in {path.name} is of kind {default!r}")
    return found[0]


def sources(arm: Arm) -> dict[str, Path]:
    """Label -> file of everything whose content is part of an arm: its module, what it imports beside it, its prompts."""
    own = sys.modules[type(arm).__module__].__file__
    assert own is not None
    folder = Path(__file__).parent
    found = {f"arms/{Path(own).name}": Path(own)}
    found |= {f"arms/{name}": folder / name for name in arm.sources()}
    found |= {f"prompts/{name}.md": prompts.ROOT / f"{name}.md" for name in arm.prompt_names()}
    found |= {f"prompts/{path.name}": path for path in sorted(prompts.ROOT.glob("format_*.md"))}
    found["asking.py"] = Path(asking.__file__)
    return found
