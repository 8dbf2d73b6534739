"""What language models are told and how they are to reply.

The system message starts with the rules, which are the same for all agents of a market (of a group,
where players are told theirs), so that a server can keep their prefix; only `character` adds a
persona, at the end. The user message is the round's question. Rules, treatment and reply format
are separate texts: a treatment changes one of them and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agentsim.config.scenario import Prompt
from agentsim.games.guess_average.groups import Membership, who_plays
from agentsim.games.guess_average.parts import AttributeGroups
from agentsim.games.guess_average.spec import GuessAverageSpec
from agentsim.games.guess_average.words import (
    GROUP_MEANINGS,
    MEANINGS,
    decimals_for,
    plain,
    target_in_words,
)
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
# The same in a game between groups, and where each group is told its own numbers.
_BETWEEN = {
    "mean": "the average of the groups' numbers",
    "median": "the median of the groups' numbers",
    "winning_guess": "the number of the winning group",
}
_OWN = {
    "mean": "the average of your group's numbers",
    "median": "the median of your group's numbers",
}
_OWN_COLUMNS = {"mean": "average of your group", "median": "median of your group"}


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


def system(
    spec: GuessAverageSpec,
    n: int,
    prompt: Prompt,
    persona: str | None,
    group: Membership | None = None,
) -> str:
    """The system message.

    Args:
        spec: the game.
        n: players in the market.
        prompt: the treatment.
        persona: who the agent is. Shown by `character` alone.
        group: the player's; None when there are none. What groups by an attribute are called is
            part of the persona: only `character` tells it, the others number them.

    Raises:
        ValueError: `character` without a persona.
    """
    named = prompt == "character" and isinstance(spec.groups, AttributeGroups)
    who = who_plays(spec, group, named) if group is not None else ""
    parts = [_rules(spec, n, who)]
    if _TREATMENTS[prompt]:
        parts.append(_TREATMENTS[prompt])
    if prompt == "character":
        if persona is None:
            raise ValueError("the prompt `character` needs a persona")
        parts.append(f"The person:\n{persona.strip()}")
    return "\n\n".join(parts)


def _rules(spec: GuessAverageSpec, n: int, groups: str) -> str:
    low, high = _range(spec)
    who = f"one of {n} players in" if n > 1 else "the only player of"
    between = spec.scope == "between"
    reader = "each player" if spec.tells_groups else "everybody"
    told = _listed([_announced(spec, name) for name in spec.told])
    told = told.replace("your group", "its own group") if spec.tells_groups else told
    after = f"{reader} is told {told}" if told else "nothing is announced"
    own = ["- A group's number is the average of its players' numbers."] if between else []
    target = target_in_words(spec.target, GROUP_MEANINGS if between else MEANINGS)
    game = f"You are {who} a guessing game. It is played in rounds."
    return "\n".join(
        [
            " ".join(part for part in (game, groups, "In each round:") if part),
            f"- Every player picks a number from {low} to {high}. Decimals are allowed. Nobody "
            "knows what the others pick.",
            *own,
            f"- The target is {target}. Your own number counts too.",
            f"- {_winning(spec)}",
            f"- After the round {after}.",
        ]
    )


def _winning(spec: GuessAverageSpec) -> str:
    winners = spec.winners
    between = spec.scope == "between"
    who, several = ("group", "winning groups") if between else ("player", "winners")
    text = f"The {who} whose number is closest to the target wins"
    text += f" a prize of {plain(winners.prize)} points" if winners.prize else ""
    text += ", which its players share equally." if winners.prize and between else "."
    if winners.band:
        band = plain(winners.band, decimals_for(*spec.range))
        every = "group whose number" if between else "number that"
        text += f" Every {every} is at most {band} farther from the target than the closest one"
        text += " wins too."
    match winners.ties:
        case "split" if winners.prize:
            text += f" If there are several {several}, they share the prize."
        case "each" if winners.prize:
            text += f" If there are several {several}, each gets the whole prize."
        case "draw":
            text += f" If there are several {several}, one of them is drawn by lot and wins alone."
    return text


def _announced(spec: GuessAverageSpec, name: str) -> str:
    """What an announced number is, as a player of a group reads it."""
    own = _OWN if spec.tells_groups else {}
    between = _BETWEEN if spec.scope == "between" else {}
    return {**_ANNOUNCED, **between, **own}[name]


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
    if round == 1 or not spec.told:
        return ""
    if not announced:
        nobody = "nobody in your group" if spec.tells_groups else "nobody"
        return f"In round {round - 1} {nobody} picked a valid number, so there is nothing to tell."
    decimals = decimals_for(*spec.range)
    items = [
        f"{_announced(spec, name)} was {plain(announced[name], decimals)}"
        for name in spec.told
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
    columns = {**_COLUMNS, **_OWN_COLUMNS} if spec.tells_groups else _COLUMNS
    lines = ["The rounds so far:"] if own else []
    for round, (numbers, value) in enumerate(zip(announced, own, strict=True), 1):
        items = [
            f"{columns[name]} {plain(numbers[name], decimals)}"
            for name in spec.told
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
