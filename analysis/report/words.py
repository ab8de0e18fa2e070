"""The sentences of a report: made from decisions by templates, bound by the ground truth and by the number of tasks."""

from __future__ import annotations

from typing import Any

RATIOS = ("usd", "tokens_out", "calls")
DECISIONS = {
    "supported": "supported",
    "contradicted": "contradicted",
    "inconclusive": "inconclusive",
    "not_assessable": "not assessable",
}
UNITS = {"usd": "US dollars", "tokens_out": "output tokens", "calls": "calls"}


def number(value: Any, digits: int = 2) -> str:
    """A number for a sentence; infinite ends in words, unknown as such."""
    if value is None:
        return "unknown"
    if value == "inf":
        return "without limit"
    if value == "-inf":
        return "minus without limit"
    return f"{value:,.{digits}f}"


def points(value: float) -> str:
    """A difference of shares in points, signed."""
    return f"{100 * value:+.0f}"


def effect(claim: dict[str, Any], part: dict[str, Any]) -> str:
    """The point estimate in words; a range where something is unknown."""
    low, high = part["point_low"], part["point_high"]
    if low is None or high is None:
        return "undefined"
    if claim["metric"] in RATIOS:
        return f"{number(low)} times" if low == high else f"{number(low)} to {number(high)} times"
    unit = "points" if claim["metric"] == "solved" else "points of net preference"
    return f"{points(low)} {unit}" if low == high else f"between {points(low)} and {points(high)} {unit}"


def interval(claim: dict[str, Any], part: dict[str, Any]) -> str:
    """The simultaneous interval in words."""
    if part["low"] is None or part["high"] is None:
        return "no interval"
    if claim["metric"] in RATIOS:
        return f"{number(part['low'])} to {number(part['high'])} times"
    return f"{points(part['low'])} to {points(part['high'])} points"


def sentence(claim: dict[str, Any]) -> str:
    """What was found about one claim, in one plain sentence."""
    opening = {
        "supported": "The data support this for the tasks that the pools sample from",
        "contradicted": "The data speak against this",
        "inconclusive": "The data do not decide this",
        "not_assessable": "This cannot be assessed",
    }[claim["decision"]]
    if claim["decision"] == "not_assessable":
        return f"{opening}: {claim['why']}."
    said = "; ".join(_part(claim, part) for part in claim["estimates"])
    return f"{opening}: {said}."


def _part(claim: dict[str, Any], part: dict[str, Any]) -> str:
    tasks = f"{part['tasks']} task{'s' if part['tasks'] != 1 else ''}"
    level = f"{100 * part['level']:.3g} % interval"
    text = (
        f"{claim['arm']} against {part['baseline']}: {effect(claim, part)} ({level} {interval(claim, part)}, {tasks})"
    )
    counts = part["counts"]
    if claim["metric"] == "solved":
        text += (
            f", solved {counts['arm solved']} of {counts['arm trials']} against "
            f"{counts['baseline solved']} of {counts['baseline trials']}"
        )
    if claim["metric"] == "preference":
        text += ", " + ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    if claim["metric"] in RATIOS:
        text += f", {UNITS[claim['metric']]} of the baseline over the arm's"
    return text


def amount(pair: list[Any], digits: int = 0) -> str:
    """A usage [known, at most] in words: "at least" wherever a part is unknown."""
    low, high = pair
    if low == high:
        return number(low, digits)
    if high == "inf":
        return f"at least {number(low, digits)}"
    return f"at least {number(low, digits)}, at most {number(high, digits)}"


def total_tokens(found: dict[str, Any], key: str) -> str:
    """A total of the study; "at least" also where a killed call may have been billed."""
    text = amount(found["usage"]["total"][key])
    orphans = found["run"]["orphans"]["calls"]
    return text if not orphans or text.startswith("at least") else f"at least {text}"


def cost(found: dict[str, Any]) -> str:
    """What the study cost, in one sentence."""
    total, orphans = found["usage"]["total"], found["run"]["orphans"]["calls"]
    money = amount(total["usd"], 4)
    lost = f", {orphans} of them ended with their process, possibly billed" if orphans else ""
    calls = total["calls"] + orphans
    return (
        f"{calls:,} calls{lost}; {total_tokens(found, 'tokens_in')} tokens in, {total_tokens(found, 'tokens_out')} out; "
        f"{money if money.startswith('at least') else '$' + money}"
    )


def against(found: dict[str, Any], claim: dict[str, Any]) -> str:
    """What the arm costs against its baseline, output tokens for a trial."""
    arm, parts = found["arms"][claim["arm"]], []
    baselines = claim["baseline"] if isinstance(claim["baseline"], list) else [claim["baseline"]]
    for name in baselines:
        base = found["arms"][name]
        mine, theirs = arm["usage"]["tokens_out"][0] / arm["trials"], base["usage"]["tokens_out"][0] / base["trials"]
        least = "at least " if arm["usage"]["unknown"] or base["usage"]["unknown"] else ""
        times = f"{mine / theirs:.1f} times as many" if theirs else "no comparison possible"
        parts.append(f"{least}{mine:,.0f} output tokens a trial, {name} {theirs:,.0f}: {times}")
    return "; ".join(parts)


def surely(found: dict[str, Any]) -> str:
    """How sure that is: the rule was fixed before the data, how many tasks, and what so many could have decided."""
    run, study = found["run"], found["study"]
    order = (
        "before the first call"
        if run["first_call_at"] is None or run["frozen_at"] <= run["first_call_at"]
        else "AFTER the first call"
    )
    tasks = ", ".join(f"{pool['tasks']} of {name}" for name, pool in study["pools"].items())
    beyond = [name for name, entry in found["power"].items() if not entry["supportable"]]
    reach = f" Whatever they had shown, so few tasks could not have supported {', '.join(beyond)}." if beyond else ""
    return (
        f"Question, claims and rules were frozen {order} ({run['frozen_at']}). Tasks: {tasks}; repeats: {study['repeats']}. "
        f"Intervals hold together at {100 * study['level']:g} %.{reach}"
    )


def power(claim_id: str, entry: dict[str, Any]) -> str:
    """What so many tasks could have decided."""
    size = f"{entry['tasks']} tasks x {entry['repeats']}"
    if not entry["supportable"]:
        return f"{claim_id}: {size}: no result could have supported it."
    tallies = entry["tallies"] or entry["tallies_alone"]
    if not tallies:
        return f"{claim_id}: {size}: only a claim standing alone could have been supported, by a clean sweep."
    said = ", ".join(f"{wins}-{losses}" for wins, losses in tallies[:4])
    return f"{claim_id}: {size}: decided by {said} (wins-losses, the rest ties) whatever the other claims show."
