"""Estimators: arrays in, numbers out. numpy and scipy only; nothing here knows of studies, receipts or files.

Floors: `exact`, then `intervals`, then the rest, which do not import each other.
"""

from __future__ import annotations

from analysis.estimate.agreement import (
    accuracy,
    cohen_kappa,
    effective_panel_size,
    first_position_bias,
    krippendorff_alpha,
)
from analysis.estimate.bounds import Bounded, Row, preference, sensitivity, total
from analysis.estimate.cost import RatioEstimate, cost_per_solved, cost_ratio
from analysis.estimate.decide import Decision, decide
from analysis.estimate.exact import bootstrap_law, dirichlet_mean_cdf, lattice_step, mcnemar, sign_flip
from analysis.estimate.intervals import (
    Interval,
    bca_bootstrap,
    clopper_pearson,
    gaffke,
    gaffke_p,
    percentile_bootstrap,
    wilson,
)
from analysis.estimate.multiplicity import Simultaneous, benjamini_hochberg, holm, simultaneous, split_level
from analysis.estimate.passk import pass_at_k, pass_power_k
from analysis.estimate.power import (
    best_repeats,
    can_be_supported,
    decisive_tallies,
    minimum_detectable,
    pilot_inflation,
    sentence,
    tasks_needed,
)

__all__ = [
    "Bounded",
    "Decision",
    "Interval",
    "RatioEstimate",
    "Row",
    "Simultaneous",
    "accuracy",
    "bca_bootstrap",
    "benjamini_hochberg",
    "best_repeats",
    "bootstrap_law",
    "can_be_supported",
    "clopper_pearson",
    "cohen_kappa",
    "cost_per_solved",
    "cost_ratio",
    "decide",
    "decisive_tallies",
    "dirichlet_mean_cdf",
    "effective_panel_size",
    "first_position_bias",
    "gaffke",
    "gaffke_p",
    "holm",
    "krippendorff_alpha",
    "lattice_step",
    "mcnemar",
    "minimum_detectable",
    "pass_at_k",
    "pass_power_k",
    "percentile_bootstrap",
    "pilot_inflation",
    "preference",
    "sensitivity",
    "sentence",
    "sign_flip",
    "simultaneous",
    "split_level",
    "tasks_needed",
    "total",
    "wilson",
]
