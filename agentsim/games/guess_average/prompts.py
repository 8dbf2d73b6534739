"""What language models are told and how they are to reply.

The system message starts with the rules, which are the same for all agents of a market, so that a
server can keep their prefix; only `character` adds a persona, at the end. The user message is the
round's question. Rules, treatment and reply format are separate texts: a treatment changes one of
them and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agentsim.config.scenario import Prompt
from agentsim.games.guess_average.spec import GuessAverageSpec
from agentsim.games.guess_average.words import decimals_for, plain, target_in_words
from agentsim.replies import Status

Format = Literal["json", "text"]

_TREATMENTS: dict[Prompt, str] = {
    "direct": "",
    "step_by_step": "Think step by step before you pick your number.",
    "rational": (
        "All players, you included, are perfectly rational: each wants to win, reasons without "
        "mistakes, and knows that all the others do so too. Reason like this before you pick your "
        "number."
    ),
    "strategic": (
        "Before you pick your number, ask yourself how the other players will think and which "
        "numbers they are likely to pick. Then look for the number that does best against theirs."
    ),
    "character": (
        "Play as the person who is described below: with that person's knowledge, interests and "
        "way of thinking. Think as this person would before you pick your number."
    ),
}
_ANNOUNCED = {
    "mean": "the average of all numbers",
    "median": "the median of all numbers",
    "target": "the target",
    "winning_guess": "the winning number",
}
_COLUMNS = {
    "mean": "average",
    "median": "median",
    "target": "target",
    "winning_guess": "winning number",
}


# By format, and whether there is room for reasoning: `direct` gets none.
_FORMATS: dict[tuple[Format, bool], str] = {
    ("json", True): 'Reply with a JSON object and nothing else: {"number": <your number>}',
    ("json", False): (
        "Reply with a JSON object and nothing else. It holds your reasoning first, in a few "
        "sentences, then your number: "
        '{"reasoning": "<your reasoning>", "number": <your number>}'
    ),
    ("text", True): "Reply with your number and nothing else.",
    ("text", False): (
        "Give your reasoning in a few sentences. Then end with a line of this form:\n"
        "Answer: <your number>"
    ),
}


def system(spec: GuessAverageSpec, n: int, prompt: Prompt, persona: str | None) -> str:
    """The system message.

    Args:
        spec: the game.
        n: players in the market.
        prompt: the treatment.
        persona: who the agent is. Shown by `character` alone.

    Raises:
        ValueError: `character` without a persona.
    """
    parts = [_rules(spec, n)]
    if _TREATMENTS[prompt]:
        parts.append(_TREATMENTS[prompt])
    if prompt == "character":
        if persona is None:
            raise ValueError("the prompt `character` needs a persona")
        parts.append(f"The person:\n{persona.strip()}")
    return "\n\n".join(parts)


def _rules(spec: GuessAverageSpec, n: int) -> str:
    low, high = _range(spec)
    who = f"one of {n} players in" if n > 1 else "the only player of"
    told = _listed([_ANNOUNCED[name] for name in spec.announce])
    after = f"everybody is told {told}" if told else "nothing is announced"
    return "\n".join(
        [
            f"You are {who} a guessing game. It is played in rounds. In each round:",
            f"- Every player picks a number from {low} to {high}. Decimals are allowed. Nobody "
            "knows what the others pick.",
            f"- The target is {target_in_words(spec.target)}. Your own number counts too.",
            f"- {_winning(spec)}",
            f"- After the round {after}.",
        ]
    )


def _winning(spec: GuessAverageSpec) -> str:
    winners = spec.winners
    text = "The player whose number is closest to the target wins"
    text += f" a prize of {plain(winners.prize)} points." if winners.prize else "."
    if winners.band:
        band = plain(winners.band, decimals_for(*spec.range))
        text += f" Every number that is at most {band} farther from the target than the closest one"
        text += " wins too."
    match winners.ties:
        case "split" if winners.prize:
            text += " If there are several winners, they share the prize."
        case "each" if winners.prize:
            text += " If there are several winners, each gets the whole prize."
        case "draw":
            text += " If there are several winners, one of them is drawn by lot and wins alone."
    return text


def question(
    spec: GuessAverageSpec, round: int, announced: Mapping[str, float], before: str = ""
) -> str:
    """What a round asks, without the reply format.

    Args:
        spec: the game.
        round: from 1.
        announced: what was announced after the last round.
        before: a table of earlier rounds (see `table`); it stands in for the announcement.
    """
    low, high = _range(spec)
    told = before if before else _announcement(spec, round, announced)
    ask = f"This is round {round}. Which number from {low} to {high} do you pick?"
    return f"{told}\n\n{ask}" if told else ask


def _announcement(spec: GuessAverageSpec, round: int, announced: Mapping[str, float]) -> str:
    if round == 1 or not spec.announce:
        return ""
    if not announced:
        return f"In round {round - 1} nobody picked a valid number, so there is nothing to tell."
    decimals = decimals_for(*spec.range)
    items = [
        f"{_ANNOUNCED[name]} was {plain(announced[name], decimals)}"
        for name in spec.announce
        if name in announced
    ]
    return f"In round {round - 1} {_listed(items)}."


def table(
    spec: GuessAverageSpec,
    announced: Sequence[Mapping[str, float]],
    own: Sequence[float | None],
) -> str:
    """Earlier rounds in numbers, a line each.

    Args:
        spec: the game.
        announced: what was announced after each earlier round.
        own: the agent's number in each of them, None where it had no valid one.
    """
    decimals = decimals_for(*spec.range)
    lines = ["The rounds so far:"] if own else []
    for round, (numbers, value) in enumerate(zip(announced, own, strict=True), 1):
        items = [
            f"{_COLUMNS[name]} {plain(numbers[name], decimals)}"
            for name in spec.announce
            if name in numbers
        ]
        mine = (
            "no valid number from you" if value is None else f"your number {plain(value, decimals)}"
        )
        lines.append(f"Round {round}: {', '.join([*items, mine])}")
    return "\n".join(lines)


def reply_format(prompt: Prompt, format: Format) -> str:
    """How the reply is to look; the last paragraph of every question."""
    return _FORMATS[format, prompt == "direct"]


def schema(prompt: Prompt) -> dict[str, Any]:
    """JSON schema of the reply. It has no bounds: a decoder that enforces them would clip."""
    properties: dict[str, Any] = {"number": {"type": "number"}}
    if prompt != "direct":
        properties = {"reasoning": {"type": "string"}, **properties}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def reminder(spec: GuessAverageSpec, status: Status) -> str:
    """What is added when an agent is asked again; empty when its request failed."""
    low, high = _range(spec)
    match status:
        case Status.TRUNCATED:
            why = "it was too long and was cut off before its end. Be brief"
        case Status.EMPTY:
            why = "it was empty"
        case Status.NO_ANSWER:
            why = "there was no number in it that could be read as your pick"
        case Status.AMBIGUOUS:
            why = "it was not clear which number you pick. Name one number only"
        case Status.OUT_OF_RANGE:
            why = f"your number was not in the range from {low} to {high}"
        case _:
            return ""
    return f"You were asked this before, and your reply could not be used: {why}."


def _range(spec: GuessAverageSpec) -> tuple[str, str]:
    low, high = spec.range
    return f"{low:.10g}", f"{high:.10g}"


def _listed(items: Sequence[str]) -> str:
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"
