"""pass@k and pass^k from n runs of a task, without bias.

Sources: Chen et al. (2021), "Evaluating large language models trained on code", for pass@k; Yao et al. (2024),
"tau-bench", for pass^k.
"""

from __future__ import annotations

from math import comb


def pass_at_k(n: int, solved: int, k: int) -> float:
    """Probability that at least one of k runs, drawn without replacement from n of which `solved` passed, passes.

    Raises:
        ValueError: unless 1 <= k <= n and 0 <= solved <= n.
    """
    _check(n, solved, k)
    return 1 - comb(n - solved, k) / comb(n, k)


def pass_power_k(n: int, solved: int, k: int) -> float:
    """pass^k: the probability that all of k runs, drawn without replacement from n of which `solved` passed, pass.

    Raises:
        ValueError: unless 1 <= k <= n and 0 <= solved <= n.
    """
    _check(n, solved, k)
    return comb(solved, k) / comb(n, k)


def _check(n: int, solved: int, k: int) -> None:
    if not 1 <= k <= n or not 0 <= solved <= n:
        raise ValueError(f"k of n runs needs 1 <= k <= n and 0 <= solved <= n, not k = {k}, n = {n}, solved = {solved}")
