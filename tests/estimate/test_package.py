"""The package as a whole: its floors, its names, and how light it is."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from analysis import estimate

FOLDER = Path(estimate.__file__).parent
LOWER = {"exact": set(), "intervals": {"exact"}}


def test_all_names_exist() -> None:
    """And are in order."""
    assert sorted(estimate.__all__) == estimate.__all__
    assert all(hasattr(estimate, name) for name in estimate.__all__)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.stem)
def test_floors_inside_the_package(file: Path) -> None:
    """`exact`, then `intervals`, then the rest, which do not import each other."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
    used = {str(node.module).rpartition(".")[2] for node in nodes if str(node.module).startswith("analysis.estimate")}
    assert file.stem == "__init__" or used <= LOWER.get(file.stem, {"exact", "intervals"})


def test_importing_it_imports_nothing_heavy() -> None:
    """numpy and scipy.special only."""
    code = (
        "import sys\nimport analysis.estimate\n"
        "print([m for m in ('scipy.stats', 'scipy.optimize', 'pandas', 'matplotlib', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
