"""Numbers that nothing declares: one that is chosen, one that is not, or several."""

from __future__ import annotations

import re
from typing import Final

from agentsim.replies import vocabulary as words
from agentsim.replies.chains import follow
from agentsim.replies.context import SAME, Context, line_after, line_before
from agentsim.replies.outcome import Outcome, ambiguous, no_answer, of_number
from agentsim.replies.patterns import ABOUT_OTHERS
from agentsim.replies.quantities import RANGE, RULE, Item, Quantity
from agentsim.replies.rule import Rule
from agentsim.replies.status import Status
from agentsim.replies.tokens import Kind, Token

FIRST_LINE: Final = "the first line is a number"
LAST_LINE: Final = "the last line is a number"

_BELIEF: Final = "and it is a belief"
_UNKNOWN: Final = "and the reply does not choose it"

_TAKEN: Final = frozenset([Status.OK, Status.OUT_OF_RANGE, Status.AMBIGUOUS])
_MOST_REPETITIONS: Final = 4  # nobody chooses the same number more often; a loop is no answer
_GOES_ON: Final = words.word_set("is are was will would might could of people and or")
_IS_AGE: Final = re.compile(r"(?:^|[ ])(?:i'm|i am|im|(?:i|me) ,) $")
_MARKS: Final = frozenset([":", ",", "→", "~", "≈", "=", "(", "|", "-", "–", "—", "\n", "§", SAME])
_NAMED_ROUND: Final = re.compile(r"\b(?:round|game|day|session|turn|step) # ")
_OWN_RANGE: Final = re.compile(r"\b(?:between|from|in|within|the|range|of|on|scale| )*§ \S+ § ")
_I_WILL: Final = re.compile(r"\b(?:i|we) will ")
_LET_ME: Final = re.compile(r"\blet (?:me|us) ")
_UNKNOWN_X: Final = re.compile(r"(?:^|\b(?:so|thus|therefore|hence|choose|pick) )[xn] = $")
_OPENS_CHOICE: Final = re.compile(
    r"(?P<link>^|[,;:—–] |\b(?:so|thus|therefore|hence|but) )"
    r"(?:i think|i'd say|i say|i'd guess|i feel|i'd go|i'd go with|maybe|perhaps|probably|i believe"
    r"|let's say|make it|so) (?:(?:about|around|roughly|approximately|maybe|exactly|with|the|number"
    r"|~|≈|it's|a|of) )*$"
)
_QUALITY: Final = (
    r"(?:good|reasonable|safe|fair|solid|decent|nice|strong|right|best|smart|fine|great|ok|okay"
    r"|perfect|plausible|sensible)"
)
_MAY_FOLLOW: Final = re.compile(
    r"^(?:$|[.!?…,;(\n)|—–:-]|(?:points?|pts?|dollars?|euros?|units?)(?: [.!?,;\n]|$)"
    r"|because|since|as\b(?! (?:the|an|a) (?:average|mean|median))|given|based|due|considering"
    r"|assuming|hoping|so\b|for (?:me|now|this|the (?:round|game))|please|too\b|then\b|again"
    r"|this (?:time|round)|it is|in (?:this|my)|thanks|i (?:think|guess|suppose|say)|or so"
    rf"|(?:is|seems|sounds|feels|looks|would be|might be|could be) (?:like )?(?:my\b|(?:a |the )?"
    rf"(?:\w+ )?{_QUALITY}\b(?: (?:choice|guess|number|pick|bet|answer|option|start|one|to me"
    r"|for me|here)|(?: [.!?,;\n]|$)))|is what i|should (?:do|work)\b)"
)


def read(
    text: str, items: list[Item], context: Context, candidates: list[int], rule: Rule
) -> Outcome:
    """What a reply without any declaration says.

    Args:
        text: the cleaned text.
        items: its tokens and quantities.
        context: negations and conditions by item.
        candidates: indexes of the quantities in digits that may be an answer.
        rule: the game.
    """
    if not candidates:
        return _without_digits(text, items, context, rule)
    if len(candidates) == 1:
        return _single(text, items, context, candidates[0], rule)
    own_line = _own_line(items, candidates, rule)
    if own_line is not None:
        return own_line
    values = {item.value for i in candidates if isinstance(item := items[i], Quantity)}
    if len(values) == 1 and len(candidates) <= _MOST_REPETITIONS:
        outcomes = [_single(text, items, context, i, rule) for i in candidates]
        if all(outcome.number is not None for outcome in outcomes):
            return outcomes[0]
    return ambiguous("several numbers, and none is declared to be the answer")


def has_line_to_itself(items: list[Item], i: int) -> bool:
    """Whether nothing else stands on the line of item `i`."""
    before = items[i - 1] if i else None
    after = items[i + 1] if i + 1 < len(items) else None
    if isinstance(after, Token) and after.kind is Kind.END and after.text in {".", "!"}:
        after = items[i + 2] if i + 2 < len(items) else None
    return all(
        item is None or (isinstance(item, Token) and item.kind is Kind.LINE)
        for item in (before, after)
    )


def nothing_before(items: list[Item], i: int) -> bool:
    """Whether item `i` opens the text."""
    return _may_precede(line_before(items, i)) and i < 4


def _own_line(items: list[Item], candidates: list[int], rule: Rule) -> Outcome | None:
    """A number on the first or on the last line, where all numbers on own lines are the same."""
    own = [i for i in candidates if has_line_to_itself(items, i)]
    quantities = [item for i in own if isinstance(item := items[i], Quantity)]
    values = {quantity.value for quantity in quantities}
    if len(values) != 1:
        return None
    value = values.pop()
    is_first = own[0] == candidates[0] and _opens_text(items, own[0])
    is_last = own[-1] == candidates[-1] and _ends_sentence(items, own[-1])
    if not (is_first or is_last):
        return None
    if value is None:
        return ambiguous(quantities[0].doubt)
    return of_number(value, rule, FIRST_LINE if is_first else LAST_LINE)


def _opens_text(items: list[Item], i: int) -> bool:
    """Whether item `i` is the first line, and the text goes on with a new sentence."""
    if not has_line_to_itself(items, i):
        return False
    is_first = i < 3 and all(
        isinstance(item, Token) and item.kind is Kind.LINE for item in items[:i]
    )
    following = [item.text for item in items[i + 1 : i + 4] if isinstance(item, Token)]
    opener = next((text for text in following if text[:1].isalpha()), "")
    return is_first and opener != "" and opener not in _GOES_ON


def _ends_sentence(items: list[Item], i: int) -> bool:
    """Whether item `i` ends the text, and the text before it is a finished sentence."""
    rest_is_empty = all(
        isinstance(item, Token) and item.kind in {Kind.END, Kind.LINE} for item in items[i + 1 :]
    )
    before = items[i - 2] if i >= 2 else None
    return rest_is_empty and isinstance(before, Token) and before.kind is Kind.END


def _without_digits(text: str, items: list[Item], context: Context, rule: Rule) -> Outcome:
    """Number words, or numbers that all are something else."""
    quantities = [(i, item) for i, item in enumerate(items) if isinstance(item, Quantity)]
    in_words = [
        i
        for i, item in quantities
        if item.in_words and item.role == "" and not line_after(items, i).startswith("of ")
    ]
    restated = [i for i, item in quantities if item.role in {RANGE, RULE} and not item.in_words]
    if restated:
        if context.negated[restated[0]]:
            return no_answer("one number or more, and none is chosen")
        return ambiguous("the range or the rule is restated")
    chosen = [i for i in in_words if _single(text, items, context, i, rule).status in _TAKEN]
    if len(in_words) == 1 and chosen:
        return _single(text, items, context, chosen[0], rule)
    if chosen and chosen[0] == in_words[0]:
        return ambiguous("several numbers, and none is declared to be the answer")
    halves = [i for i, item in quantities if item.role == RULE]
    if halves and not in_words and _may_precede(line_before(items, halves[0])):
        return ambiguous("a fraction in words is not worked out")
    return no_answer("no number is given as the answer")


def _single(text: str, items: list[Item], context: Context, i: int, rule: Rule) -> Outcome:
    """The only number: chosen, or a belief, an age, excluded, or simply not chosen."""
    item = items[i]
    assert isinstance(item, Quantity)
    why = _is_chosen(items, context, i)
    chain = follow(items, i)
    if chain.value is None and _is_offered(items, i, why):
        return ambiguous(chain.doubt)
    if why:
        return no_answer(f"one number, {why}")
    assert chain.value is not None
    reason = FIRST_LINE if _opens_text(items, i) else "the only number, and it is chosen"
    return of_number(chain.value, rule, reason)


def _is_offered(items: list[Item], i: int, why: str) -> bool:
    """Whether an unclear number is meant as the answer: `22½`, `at most 22`, `20 or more`."""
    before = re.sub(
        r"\b(?:at (?:most|least)|(?:more|less|lower|higher|greater|smaller) than) $",
        "",
        line_before(items, i),
    )
    before = re.sub(
        r"(?:\b(?:under|below|above|over|almost|nearly|upto|up to)|[<>≤≥±−—√\x1a]=?) $", "", before
    )
    is_belief = bool(words.BELIEFS & set(before.split()))
    return not why or (why in {_UNKNOWN, _BELIEF} and not is_belief and _may_precede(before))


def _is_chosen(items: list[Item], context: Context, i: int) -> str:
    """Empty where the reply chooses the number; else why it is not the answer."""
    before, after = line_before(items, i), line_after(items, i)
    if context.negated[i]:
        return "and it is excluded"
    clause_after = re.split(r" (?:because|since|as|so|but|,|;|\() ", f" {after} ", maxsplit=1)[0]
    if words.BELIEFS & set(clause_after.split()) or ABOUT_OTHERS.match(after):
        return _BELIEF
    if _IS_AGE.search(before):
        return "and it is an age"
    if _follows_question(items, i):
        return "and it answers another question"
    clause = _OPENS_CHOICE.search(before)
    is_belief = bool(words.BELIEFS & set(before.split()))
    if clause is not None and (not is_belief or clause["link"].strip().isalpha()):
        return "" if _MAY_FOLLOW.match(after) else _UNKNOWN
    if is_belief:
        return _BELIEF
    if context.conditional[i] or not _may_precede(before) or not _MAY_FOLLOW.match(after):
        return _UNKNOWN
    return ""


def _may_precede(before: str) -> bool:
    """Whether every word before the number is one that choices are made with."""
    before = before.rpartition("\n\n ")[2]
    before = _OWN_RANGE.sub(" ", _NAMED_ROUND.sub("", before))
    before = _I_WILL.sub("", before)
    before = _LET_ME.sub("", _UNKNOWN_X.sub("", before))
    return all(part in words.CHOOSING or part in _MARKS for part in before.split(" ") if part)


def _follows_question(items: list[Item], i: int) -> bool:
    """`What will the average be? 33.`"""
    asked: set[str] = set()
    is_question = False
    for item in reversed(items[max(0, i - 24) : i]):
        if not isinstance(item, Token):
            continue
        if item.kind is Kind.END:
            if is_question:
                break
            if "?" not in item.text:
                return False
            is_question = True
        asked.add(item.text)
    return is_question and bool(words.BELIEFS & asked)
