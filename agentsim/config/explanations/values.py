"""Pages about values."""

from __future__ import annotations

from agentsim.config.explanations.page import SCENARIO, Example, Page


def _age(*, low: int, high: int) -> str:
    bounds = f"        low: {low}\n        high: {high}\n"
    return f"attributes:\n  age:\n    integer:\n      uniform:\n{bounds}"


_PLAIN = "game: {type: guess_average}\n"

PAGES: dict[str, Page] = {
    "bad-expression": Page(
        means="The target of a game is an expression of `mean`, `median` and `n`, with numbers, "
        "`+ - * /` and brackets, and nothing else: no functions, no other names. It is read by a "
        "small reader of our own; no code in it is ever run.",
        wrong=Example(
            SCENARIO.replace(_PLAIN, "game: {type: guess_average, target: 2/3 * average}\n")
        ),
        right=Example(
            SCENARIO.replace(_PLAIN, "game: {type: guess_average, target: 2/3 * mean}\n")
        ),
        mend="The finding says at which character reading stopped. Write the target with the "
        "three names, for example `51/100 * mean`, `5 + mean / 2` or `2/3 * median`.",
    ),
    "bad-value": Page(
        means="For example a name with spaces, an address without http, or edges of a histogram "
        "that do not ascend.",
        wrong=Example(SCENARIO.replace("two-thirds", "Two thirds")),
        right=Example(SCENARIO),
        mend="The finding says what form the value must have, with an example.",
    ),
    "contradiction": Page(
        means="Each of the two would be right alone, so both places are shown where there are "
        "two: in one file, in two files, or on the command line.",
        wrong=Example(
            _age(low=65, high=18),
            "population.yaml",
        ),
        right=Example(
            _age(low=18, high=65),
            "population.yaml",
        ),
        mend="Change one of the two. Other examples: `prompt: character` without a population, a "
        "comparison with people who played another game, players of a theory in a game for which "
        "the theory has no answer.",
    ),
    "out-of-range": Page(
        means="A number outside its bounds, or a text or list that is too short or too long. "
        "Numbers that are not finite, such as `.nan` and `.inf`, are outside all bounds.",
        wrong=Example(SCENARIO.replace("agents: 100", "agents: 0")),
        right=Example(SCENARIO),
        mend="Take a value inside the bounds that the finding states. Nothing is moved to the "
        "nearest bound by itself.",
    ),
    "shares-sum": Page(
        means="Shares of categories, bins and levels sum to 1, within a millionth. They are not "
        "scaled, because a sum that is not 1 mostly means that a category was forgotten or a "
        "digit mistyped.",
        wrong=Example(
            "attributes:\n  gender: {categories: {female: 0.5, male: 0.48}}\n", "population.yaml"
        ),
        right=Example(
            "attributes:\n  gender: {categories: {female: 0.5, male: 0.48, non-binary: 0.02}}\n",
            "population.yaml",
        ),
        mend="Complete the categories, or divide every share by the sum. Percentages are written "
        "as 0.48, not 48; thirds need seven digits or more.",
    ),
    "wrong-type": Page(
        means="A value of the wrong type: text for a number, a list for a map, a file of another "
        "kind. Words keep what their author wrote: `no`, `on`, `010` and `12:30:00` are text "
        "here, not false, true, 8 and 45,000 as in older YAML. Only `true` and `false` are truth "
        "values; `1e-4` is a number; a whole number has no point.",
        wrong=Example(SCENARIO.replace("agents: 100", 'agents: "100"')),
        right=Example(SCENARIO),
        mend="Write a value of the type that the finding asks for. Quotes make text of anything; "
        "without them digits are a number.",
    ),
}
