"""The house has floors: a file imports only from floors below its own, and the command starts light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

FLOORS: list[tuple[float, tuple[str, ...]]] = [
    (0, ("harness.errors",)),
    (0.1, ("harness.canonical",)),
    (0.2, ("harness.records",)),
    (1, ("harness.journal", "harness.prompts", "harness.reading", "harness.models.*")),
    (1.5, ("harness.stored",)),
    (2, ("harness.models", "harness.asking", "tasks")),
    (3, ("harness.arms.*", "tasks.making")),
    (4, ("harness.arms",)),
    (5, ("harness.study",)),
    (6, ("harness.freeze", "harness.plan", "harness.session", "harness.progress")),
    (6.5, ("harness.ask", "harness.judging")),
    (7, ("harness.run", "harness.audit", "harness.plan_text")),
    (7.5, ("harness.campaign", "harness.display")),
    (8, ("harness.cli",)),
]
"""The floor of every module of the spending side; `x.*` are the modules inside a package, which may use each other."""

ANALYSIS_MAY_USE = {
    "harness.records",
    "harness.errors",
    "harness.canonical",
    "harness.journal",
    "harness.stored",
    "harness.study",
    "harness.freeze",
}


def modules(package: str) -> dict[str, Path]:
    """Dotted name -> file of every module of a package that ships."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if package == "tasks" and len(parts) > 2:
            continue  # checkers and generators of families, loaded by path
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, *, late: bool = True) -> set[str]:
    """Modules of the project that a file imports; `late=False`: only those at its top."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(tree) if late else iter(tree.body)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in ALL else node.module for name in inner}
    return {name for name in found if name.partition(".")[0] in ("harness", "analysis", "tasks")}


ALL = modules("harness") | modules("analysis") | modules("tasks")


def floor(name: str) -> float:
    """The floor of a module.

    Raises:
        LookupError: it has none; every new module gets a place in the table.
    """
    for number, names in FLOORS:
        for pattern in names:
            if name == pattern or (pattern.endswith(".*") and name.startswith(pattern[:-1])):
                return number
    raise LookupError(f"{name} has no floor")


@pytest.mark.parametrize("name", [n for n in ALL if n.startswith(("harness.", "tasks")) and n != "harness"])
def test_a_module_imports_only_from_floors_below(name: str) -> None:
    """No module of the spending side imports from its own floor or above, packages apart."""
    for imported in imports(ALL[name], late=name != "harness.cli"):
        if imported in ("harness", name) or imported.startswith(f"{name}."):
            continue
        if imported.startswith("analysis"):
            assert name == "harness.cli", f"{name} imports {imported}"
            continue
        inside = name.rpartition(".")[0] == imported.rpartition(".")[0] and name.count(".") == 2
        assert floor(imported) < floor(name) or inside, f"{name} imports {imported}"


@pytest.mark.parametrize(
    "name", [n for n in ALL if n.startswith("analysis.") and not n.startswith("analysis.estimate")]
)
def test_analysis_uses_only_what_reads_files(name: str) -> None:
    """The analysis can be run years later on the files alone: no model, no arm, no runner."""
    used = {imported for imported in imports(ALL[name]) if imported.startswith(("harness.", "tasks"))}
    assert used <= ANALYSIS_MAY_USE
    if name != "analysis.planning":
        assert not used & {"harness.study", "harness.freeze"}, "only planning looks at a study that was not run"


@pytest.mark.parametrize("name", [n for n in ALL if n.startswith("analysis.estimate")])
def test_estimators_know_nothing_of_the_harness(name: str) -> None:
    """Estimators are functions of arrays: numpy and scipy, and each other."""
    assert all(imported.startswith("analysis.estimate") for imported in imports(ALL[name]))


def test_litellm_is_imported_in_one_file() -> None:
    """One seam to the providers."""
    users = []
    for name, path in ALL.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import) and any(a.name.partition(".")[0] == "litellm" for a in node.names):
                users.append(name)
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "litellm":
                users.append(name)
    assert set(users) == {"harness.models.litellm_seam"}


@pytest.mark.parametrize("arguments", [["--help"], ["campaign", "--help"], ["report", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """Help is instant: no provider library, no frame, no plots, no arrays."""
    code = (
        "import sys, contextlib, io\nfrom harness import cli\n"
        f"sys.argv = ['fairtrial', *{arguments!r}]\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n    cli.main()\n"
        "print([m for m in ('litellm', 'pandas', 'matplotlib', 'numpy', 'scipy', 'xllamacpp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
