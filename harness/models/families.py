"""Which family a model is of, by one frozen table over names. No match, or two, is unknown; unknown is never independent."""

from __future__ import annotations

import re

TABLE: dict[str, str] = {
    "qwen": r"\bqwen|\bqwq",
    "smollm": r"\bsmollm",
    "gpt": r"\bgpt-|\bchatgpt|\bo[134](-|$)",
    "claude": r"\bclaude",
    "gemini": r"\bgemini",
    "gemma": r"\bgemma",
    "llama": r"\bllama",
    "mistral": r"\bmistral|\bmixtral|\bministral|\bcodestral|\bmagistral|\bdevstral",
    "deepseek": r"\bdeepseek",
    "phi": r"\bphi-?\d",
    "grok": r"\bgrok",
    "command": r"\bcommand-",
    "glm": r"\bglm-?\d",
    "kimi": r"\bkimi",
    "nova": r"\bnova-",
}
"""Family -> pattern, matched without regard to case."""


def family_of(name: str) -> str | None:
    """The family of a model by its requested or served name; None: unknown."""
    found = [family for family, pattern in TABLE.items() if re.search(pattern, name, re.IGNORECASE)]
    return found[0] if len(found) == 1 else None
