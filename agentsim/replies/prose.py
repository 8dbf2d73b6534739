"""The order of the rules for prose.

1. A declared answer beats every other number ("Answer: 22"). The last box wins over earlier boxes;
   declarations that differ are ambiguous, and so is an answer that is corrected afterwards.
2. Where nothing is declared plainly, a weaker declaration counts if no number follows it
   ("so the best number is 22"), and a number that has the first or last line to itself.
3. Otherwise one number is the answer where the reply chooses it ("I think 33"), and no answer where
   it is a belief, an age or excluded. Several are ambiguous.
4. A cut reply counts only where its declared answer was complete before the cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agentsim.replies import boxes, lone
from agentsim.replies import vocabulary as words
from agentsim.replies.assembly import assemble
from agentsim.replies.chains import Chain, follow
from agentsim.replies.clean import clean
from agentsim.replies.context import Context, contexts, line_after
from agentsim.replies.declarations import Strength, strength
from agentsim.replies.outcome import Outcome, ambiguous, no_answer, of_number, truncated
from agentsim.replies.quantities import RULE, Item, Quantity
from agentsim.replies.rule import Rule
from agentsim.replies.tokens import Kind, Token, tokenize

_BOX: Final = "box"
_CORRECTION_REACH: Final = 14  # items between "no wait" and the number that it brings
_COMPLETE: Final = re.compile(
    r"[ \t]*\n|[ \t]*[.!?;][\"'*_`)\]}]*\s|[*_`\"')\]}|$]+(?:\W|$)|</|,?\s+[^\W\d]+\W|\s*[(—–]"
)
_WORDS_AFTER: Final = re.compile(
    r"^(?:$|[.!?…,;:(\n)|—–-]|because|since|as|for|please|this|it is|to be|points?)"
)


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared number: where, how strongly, and what its chain says."""

    index: int
    strength: Strength
    chain: Chain
    is_box: bool = False


@dataclass(frozen=True, slots=True)
class Prose:
    """A text, ready for the rules.

    Attributes:
        text: the cleaned text, boxes cut out.
        items: its tokens and quantities.
        context: negations and conditions by item.
        is_open: whether it ends inside a box.
    """

    text: str
    items: list[Item]
    context: Context
    is_open: bool


def read_prose(raw: str, rule: Rule, *, is_cut: bool, is_answer: bool = False) -> Outcome:
    """Reads a text without thinking and JSON objects.

    Args:
        raw: the text as the model wrote it.
        rule: the game.
        is_cut: whether the model was stopped before it ended.
        is_answer: whether the whole text is an answer field, such as a JSON string or a box.
    """
    prose = _prepare(raw, rule)
    if prose.is_open:
        return truncated("cut in a box") if is_cut else no_answer("a box that is never closed")
    declared = _declared(prose)
    strong = [one for one in declared if one.strength is Strength.STRONG]
    if strong:
        return _settle(prose, strong, rule, is_cut=is_cut)
    outcome = _undeclared(prose, declared, rule, is_answer=is_answer)
    if is_cut and outcome.reason != lone.FIRST_LINE:
        return truncated("cut before the answer was declared")
    return outcome


def read_declared(raw: str, rule: Rule) -> Outcome | None:
    """Only what a text declares plainly; None where that is nothing."""
    prose = _prepare(raw, rule)
    strong = [one for one in _declared(prose) if one.strength is Strength.STRONG]
    return _settle(prose, strong, rule, is_cut=False) if strong else None


def _prepare(raw: str, rule: Rule) -> Prose:
    boxed = boxes.cut_out(clean(raw))
    items = assemble(tokenize(boxed.text), boxed.text, rule)
    if boxed.contents:
        items = _with_box(items, boxed.contents[-1], rule)
    return Prose(boxed.text, items, contexts(items), boxed.is_open)


def _with_box(items: list[Item], content: str, rule: Rule) -> list[Item]:
    """The last box as a quantity; earlier ones stay marks, which no rule takes for a number."""
    last = max(
        i for i, item in enumerate(items) if isinstance(item, Token) and item.kind is Kind.BOX
    )
    inner = read_prose(content, rule, is_cut=False, is_answer=True)
    doubt = "" if inner.number is not None else inner.reason
    mark = items[last]
    quantity = Quantity(inner.number, doubt, _BOX, mark.start, mark.end)
    return [*items[:last], quantity, *items[last + 1 :]]


def _declared(prose: Prose) -> list[Declared]:
    """Every declared number, in order."""
    found: list[Declared] = []
    covered = -1
    for i, item in enumerate(prose.items):
        if not isinstance(item, Quantity) or i <= covered:
            continue
        if item.role == _BOX:
            found.append(Declared(i, Strength.STRONG, follow(prose.items, i), is_box=True))
            continue
        if item.role not in {"", RULE}:
            continue
        how = strength(prose.items, i, prose.context)
        if how is Strength.NOT or (item.in_words and not _stands_alone(prose, i)):
            continue
        chain = follow(prose.items, i)
        found.append(Declared(i, how, chain))
        covered = chain.end
    return found


def _stands_alone(prose: Prose, i: int) -> bool:
    """Whether a number word is a number: `I choose one.`, not `I choose one of them`."""
    after = line_after(prose.items, i)
    if after.startswith("of "):
        return False
    return _WORDS_AFTER.match(after) is not None or follow(prose.items, i).doubt != ""


def _settle(prose: Prose, strong: list[Declared], rule: Rule, *, is_cut: bool) -> Outcome:
    """The one number that all plain declarations agree on."""
    last = strong[-1]
    if is_cut and not _is_complete(prose, last):
        return truncated("cut where more digits may have followed")
    kept = [one for one in strong if one is last or not one.chain.is_softly_doubtful]
    unclear = [one for one in kept if one.chain.value is None]
    if unclear:
        if all(one.is_box for one in unclear) and len(kept) == 1 and _holds_nothing(prose, last):
            return no_answer("the box holds no number")
        return ambiguous(unclear[-1].chain.doubt)
    numbers = {one.chain.value for one in kept}
    if len(numbers) > 1:
        return ambiguous("different numbers are declared")
    number = last.chain.value
    assert number is not None
    correction = _correction(prose, last, number)
    if is_cut and (correction or _corrects_at_the_end(prose, last)):
        return truncated("cut while correcting")
    return ambiguous(correction) if correction else of_number(number, rule, "declared")


def _corrects_at_the_end(prose: Prose, declared: Declared) -> bool:
    """Whether the last words after the answer announce another one."""
    start = max(declared.chain.end + 1, len(prose.items) - _CORRECTION_REACH)
    return any(_text(prose, i) in words.CORRECTIONS for i in range(start, len(prose.items)))


def _holds_nothing(prose: Prose, box: Declared) -> bool:
    item = prose.items[box.index]
    return isinstance(item, Quantity) and item.doubt.startswith(("no number", "one number"))


def _is_complete(prose: Prose, declared: Declared) -> bool:
    """Whether something after the number shows that it had ended before the reply was cut."""
    if declared.is_box:
        return True
    end = prose.items[min(declared.chain.end, len(prose.items) - 1)].end
    return _COMPLETE.match(prose.text, end) is not None


def _correction(prose: Prose, declared: Declared, number: float) -> str:
    """Whether the reply takes its answer back further on."""
    end = declared.chain.end
    tail = prose.text[prose.items[end].end :] if end < len(prose.items) else ""
    if any(phrase in tail for phrase in words.RETRACTIONS):
        return "the answer is taken back"
    reach = -1
    for i in range(end + 1, len(prose.items)):
        item = prose.items[i]
        if isinstance(item, Token):
            is_marker = item.text in words.CORRECTIONS and _text(prose, i + 1) != "than"
            is_no = item.text == "no" and _text(prose, i + 1) in {",", ".", "", "...", "wait", "-"}
            if is_marker or is_no or (item.text == "thought" and _text(prose, i - 1) == "second"):
                reach = i + _CORRECTION_REACH
        elif item.role == "" and item.value != number and not item.in_words:
            if i <= reach:
                return "the answer is corrected"
            if lone.has_line_to_itself(prose.items, i):
                return "another number has a line to itself"
    return ""


def _text(prose: Prose, i: int) -> str:
    item = prose.items[i] if 0 <= i < len(prose.items) else None
    return item.text if isinstance(item, Token) else ""


def _undeclared(prose: Prose, declared: list[Declared], rule: Rule, *, is_answer: bool) -> Outcome:
    """Weak declarations, lines of their own, and single numbers."""
    candidates = [
        i
        for i, item in enumerate(prose.items)
        if isinstance(item, Quantity) and item.role == "" and not item.in_words
    ]
    weak = [one for one in declared if one.strength is Strength.WEAK]
    conditional = [one for one in declared if one.strength is Strength.CONDITIONAL]
    if weak and not any(i > weak[-1].chain.end for i in candidates):
        return _weak(prose, weak, rule)
    if is_answer and candidates:
        worked_out = _worked_out(prose, candidates, rule)
        if worked_out is not None:
            return worked_out
    if conditional or (weak and len(candidates) > 1):
        return ambiguous("the choice depends on a condition")
    return lone.read(prose.text, prose.items, prose.context, candidates, rule)


def _worked_out(prose: Prose, candidates: list[int], rule: Rule) -> Outcome | None:
    """An answer field that is one equation, `2/3 * 33 = 22`; None where it is not."""
    first = next(i for i, item in enumerate(prose.items) if isinstance(item, Quantity))
    chain = follow(prose.items, first)
    is_all = chain.end > first and not any(i > chain.end for i in candidates)
    if not is_all or chain.value is None or not lone.nothing_before(prose.items, first):
        return None
    return of_number(chain.value, rule, "worked out by the player")


def _weak(prose: Prose, weak: list[Declared], rule: Rule) -> Outcome:
    numbers = {one.chain.value for one in weak}
    last = weak[-1].chain
    if last.value is None:
        return ambiguous(last.doubt)
    if len(numbers - {None}) > 1:
        return ambiguous("different numbers are declared")
    correction = _correction(prose, weak[-1], last.value)
    return ambiguous(correction) if correction else of_number(last.value, rule, "declared last")
