"""Templates of prompts, and the two strict, one-pass ways in which they are filled.

`<<parameter>>` is filled by an arm when it builds a prompt (`render`). `{{label}}` is a slot: the Ask alone fills it
(`fill`), from finished replies and named inputs. Neither pass looks again at what it put in, so no text can imitate a template.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from harness.errors import PromptError

ROOT = Path(__file__).parent
NONE_SUPPLIED = "none supplied"
"""What stands for an absent input, so that absence is said and not guessed."""
_PARAMETER = re.compile(r"<<([a-z_]+)>>")
_SLOT = re.compile(r"\{\{([^{}\s]+)\}\}")


@cache
def load(name: str) -> str:
    """The template `<name>.md`, without its last newline.

    Raises:
        PromptError: there is none of this name.
    """
    path = ROOT / f"{name}.md"
    if not path.is_file():
        raise PromptError(f"no prompt {name!r} in {ROOT}")
    return path.read_text(encoding="utf-8").rstrip("\n")


def render(template: str, **parameters: str) -> str:
    """Fill each `<<parameter>>` once; slots stay.

    Raises:
        PromptError: a parameter without a value, or a value without its parameter.
    """
    wanted = set(_PARAMETER.findall(template))
    if wanted != parameters.keys():
        missing, unknown = sorted(wanted - parameters.keys()), sorted(parameters.keys() - wanted)
        raise PromptError(f"template and values do not fit: missing {missing}, unknown {unknown}")
    return _PARAMETER.sub(lambda match: parameters[match[1]], template)


def slots(text: str) -> list[str]:
    """The labels of the slots in a text, in their order, repeats included."""
    return _SLOT.findall(text)


def fill(text: str, values: dict[str, str]) -> str:
    """Fill each `{{label}}` once with its value.

    Raises:
        PromptError: a slot whose label has no value.
    """
    for label in slots(text):
        if label not in values:
            raise PromptError(f"the slot {label!r} is not among what this role may see: {', '.join(sorted(values))}")
    return _SLOT.sub(lambda match: values[match[1]], text)


def quote(text: str) -> str:
    """A text between two delimiter lines that do not occur in it, so that it cannot end its own quotation."""
    longest = max((len(run) for run in re.findall(r'"{3,}', text)), default=2)
    fence = '"' * (longest + 1)
    return f"{fence}\n{text}\n{fence}"
