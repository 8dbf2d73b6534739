"""How far a run's numbers can be trusted, in words: the same in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agentsim.report.words import count, printable, share

_TRUNCATED_SHARE = 0.01
_SMALL_MODELS = {"smollm2-135m": "135M"}

Data = Mapping[str, Any]


def valid(summary: Data) -> str:
    """How many actions are valid."""
    actions = summary["actions"]
    words = f"{count(actions['valid'])} of {count(actions['settled'])} actions are valid"
    if actions["settled"]:
        words += f" ({share(actions['valid'], actions['settled'])})"
    return words


def missing(summary: Data) -> str:
    """How many are not, by status; empty when all are."""
    actions = summary["actions"]
    if not actions["missing"]:
        return ""
    kinds = (f"{n:,} {status}" for status, n in actions["statuses"].items() if status != "ok")
    return f"{count(actions['missing'])} missing: {', '.join(kinds)}"


def warnings(summary: Data, manifest: Data) -> Iterator[str]:
    """What should make the reader careful."""
    attempts = summary["attempts"]
    model = (manifest.get("scenario") or {}).get("model") or {}
    cut = sum(entry["statuses"].get("truncated", 0) for entry in attempts["by_attempt"])
    if cut > _TRUNCATED_SHARE * attempts["total"]:
        now = f" (now {model['max_tokens']:,})" if "max_tokens" in model else ""
        step = "" if manifest.get("replay") else f": raise model.max_tokens{now}"
        part = share(cut, attempts["total"])
        yield f"{count(cut)} replies ({part}) were truncated{step}"
    yield from _replay_warnings(summary)
    if size := small_model(manifest):
        yield f"a {size} model proves the plumbing, not a hypothesis"


def survived(summary: Data) -> str:
    """What happened to a run and changed no result; empty when nothing did."""
    run = summary["run"]
    parts = []
    if resumes := run.get("resumes"):
        parts.append(f"gone on with {_times(resumes)}")
    if lost := run.get("restarts", 0) + run.get("moves", 0):
        parts.append(f"{lost} lost {'worker' if lost == 1 else 'workers'} replaced")
    if stale := run.get("stale"):
        parts.append(f"{stale} late {'message' if stale == 1 else 'messages'} dropped")
    return "; ".join(parts)


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def replayed(summary: Data) -> str:
    """How far a replay asked what was asked in the run that it replays; empty for other runs."""
    replay = summary.get("replay")
    if not replay:
        return ""
    words = f"replies of {replay['run']}, given again"
    if replay["problem"] or not replay["requests"]:
        return words
    same = "all" if replay["same"] == replay["requests"] else count(replay["same"])
    return f"{words}; {same} of {count(replay['requests'])} prompts are those of that run"


def _replay_warnings(summary: Data) -> Iterator[str]:
    replay = summary.get("replay")
    if not replay:
        return
    if replay["problem"]:
        yield f"prompts cannot be compared with those that are replayed: {replay['problem']}"
        return
    if replay["other"]:
        yield (
            f"{count(replay['other'])} of {count(replay['requests'])} prompts are not those that "
            "were recorded: these replies answer another question"
        )
        first = replay["first"][0]
        at = f", character {first['at']}" if first["at"] else ""
        yield f"first: {first['place']}: {first['what']}{at}"
        yield f"  recorded: {printable(first['left'])}"
        yield f"  now:      {printable(first['right'])}"
    if replay["unrecorded"]:
        yield f"{count(replay['unrecorded'])} requests have no recorded reply: they failed"
    if replay["unused"]:
        yield f"{count(replay['unused'])} recorded replies were not asked for"


def small_model(manifest: Data) -> str:
    """The size of the model when it is too small for any finding; else empty."""
    model = (manifest.get("scenario") or {}).get("model") or {}
    replayed = manifest.get("replay") or {}
    if model.get("backend") == "llama_cpp" or replayed:
        name = Path(str(replayed.get("model") or model.get("name", ""))).name.lower()
        for prefix, size in _SMALL_MODELS.items():
            if name.startswith(prefix):
                return size
    return ""


def limits_of_the_run(summary: Data, manifest: Data) -> Iterator[str]:
    """What the run can and cannot tell, a sentence each."""
    rounds = summary["rounds"]
    run, actions = summary["run"], summary["actions"]
    if not rounds:
        yield "No round was settled: there is nothing to tell."
        return
    sessions = len({row["session"] for row in rounds})
    if run["rounds_settled"] != run["rounds_expected"]:
        yield (
            f"Only {count(run['rounds_settled'])} of {count(run['rounds_expected'])} rounds were "
            "settled; all numbers are about these."
        )
    yield from _sessions(sessions)
    if actions["missing"]:
        yield (
            f"{count(actions['missing'])} actions are missing. Means are over the valid ones; they "
            "are the means of all players only if those missing would have guessed alike. Where "
            "the mean could be otherwise is said beside it."
        )
    if len(summary["attempts"]["by_attempt"]) > 1:
        yield (
            "Players whose reply was not valid were asked again. That changes who is in the mean: "
            "compare the first attempts alone."
        )
    if size := small_model(manifest):
        yield f"A {size} model answered. Its guesses are no evidence about reasoning."
    if replay := summary.get("replay"):
        yield (
            f"The replies are those of another run ({replay['run']}), given again: no model was "
            "asked, and this run is no further evidence about one."
        )
    yield from _people(summary)
    yield from _attributes(manifest)
    yield _repeating(summary)


def _sessions(sessions: int) -> Iterator[str]:
    if sessions == 1:
        yield (
            "One session: what happens inside it is not independent, so there is no interval "
            "between sessions, and a difference to another run cannot be told from chance. Run "
            "more sessions (sessions: 10, say)."
        )
    else:
        yield (
            f"{count(sessions)} sessions are the independent units: intervals are for the mean of "
            "their means, not for single guesses."
        )


def _people(summary: Data) -> Iterator[str]:
    if people := summary["people"]:
        yield (
            f"Of people ({people['source']}) only moments are published: they can be looked at "
            "beside the run, and there is no test of whole distributions."
        )


def _attributes(manifest: Data) -> Iterator[str]:
    population = manifest.get("population") or {}
    scenario = manifest.get("scenario") or {}
    if not population.get("attributes"):
        return
    if not persona_shown(manifest):
        why = (
            f"prompt: {scenario.get('prompt')} does not show the persona to the model"
            if is_language_model(manifest)
            else "players of this backend do not look at their persona"
        )
        yield f"Differences between attributes are chance: {why}."
    else:
        yield (
            f"{len(population['attributes'])} attributes were looked at and nothing is corrected "
            "for that: some difference between cells is to be expected by chance. Cells of one "
            "session share its history, so their intervals are not for differences between them."
        )


def is_language_model(manifest: Data) -> bool:
    """Whether a language model answered."""
    model = (manifest.get("scenario") or {}).get("model") or {}
    return "max_tokens" in model or model.get("backend") == "replay"


def persona_shown(manifest: Data) -> bool:
    """Whether those who answered knew their persona."""
    prompt = (manifest.get("scenario") or {}).get("prompt")
    # A prompt of the user's own may show anything.
    return is_language_model(manifest) and (prompt == "character" or not isinstance(prompt, str))


def _repeating(summary: Data) -> str:
    if summary.get("replay"):
        return "A replay of the same run gives the same numbers."
    if summary["tokens"] is None:
        return "Players are scripted: a rerun with the same files and seed gives the same numbers."
    return (
        "A rerun with a language model is equal in distribution only: what is sampled depends on "
        "what else is in the batch. Reading this run again gives the same numbers."
    )
