"""Estimates in, figures out; nothing is written here. Colour-blind safe, the line of no effect visible, units and n on it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
COLOURS = {"supported": BLUE, "contradicted": ORANGE, "inconclusive": GREY, "not_assessable": "#999999"}


def forest(claims: list[dict[str, Any]]) -> Figure | None:
    """The claims about differences, each with its simultaneous interval; None: there is none.

    Args:
        claims: the section `claims` of findings.json.
    """
    from matplotlib.figure import Figure

    rows = [(c, part) for c in claims for part in c["estimates"] if c["metric"] in ("solved", "preference")]
    if not rows:
        return None
    figure = Figure(figsize=(8.2, 0.9 + 0.52 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    for place, (claim, part) in enumerate(reversed(rows)):
        colour = COLOURS[claim["decision"]]
        low, high = 100 * part["low"], 100 * part["high"]
        axes.plot([low, high], [place, place], color=colour, linewidth=2.2, solid_capstyle="butt")
        first, last = 100 * part["point_low"], 100 * part["point_high"]
        if first == last:
            axes.plot([first], [place], marker="o", color=colour, markersize=7)
        else:
            axes.plot([first, last], [place, place], color=colour, linewidth=7, alpha=0.35, solid_capstyle="butt")
        bar = 100 * (-claim["margin"] if claim["direction"] == "not_worse" else claim["margin"])
        if bar:
            axes.plot([bar, bar], [place - 0.3, place + 0.3], color="black", linewidth=1, linestyle=":")
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlim(-100, 100)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    names = [
        f"{c['id']}: {c['arm']} - {p['baseline']}\n{c['decision'].replace('_', ' ')}, n = {p['tasks']} tasks"
        for c, p in reversed(rows)
    ]
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set_xlabel("difference in points, arm minus baseline (right of the line: better for the arm)", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return figure


def frontier(arms: dict[str, Any]) -> Figure | None:
    """Share solved against output tokens for a trial; None: nothing was checked.

    Args:
        arms: the section `arms` of findings.json.
    """
    from matplotlib.figure import Figure

    shown = {name: arm for name, arm in arms.items() if arm["checked"]}
    if not shown:
        return None
    figure = Figure(figsize=(8.2, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for place, (name, arm) in enumerate(sorted(shown.items())):
        tokens, rate = arm["usage"]["tokens_out"][0] / arm["trials"], 100 * arm["rate"]
        axes.plot([tokens], [rate], marker="o", color=BLUE, markersize=6)
        text = f"{name} ({arm['solved']}/{arm['checked']})"
        # Above and below in turn, so that arms of one rate do not write over each other.
        offset = (4, 4 if place % 2 else -11)
        axes.annotate(text, (tokens, rate), xytext=offset, textcoords="offset points", fontsize=8)
    axes.set_xlabel("output tokens a trial, known part", fontsize=8)
    axes.set_ylabel("checked trials solved, %", fontsize=8)
    axes.set_ylim(-14, 112)
    axes.set_xlim(left=0)
    axes.margins(x=0.2)
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure


def svg(figure: Figure) -> str:
    """A figure as SVG text without date or random ids: the same figure gives the same bytes."""
    import matplotlib

    settings = {"svg.hashsalt": "fairtrial", "svg.fonttype": "none", "font.family": "DejaVu Sans"}
    with matplotlib.rc_context(settings):  # type: ignore[arg-type,unused-ignore]
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
