"""What declares a number to be the answer, and what excludes it.

The words before and after a number are laid out as one short line (`before`, `after`), with `#` for
a number and `§` for a bound of the game's range; patterns anchored at the number are matched on it.
The lines are bounded, so that the work per number is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from agentsim.replies import vocabulary as words
from agentsim.replies.quantities import RANGE, Item, Quantity
from agentsim.replies.tokens import Kind, Token

SAME: Final = "#="
"""In a line of words: a number equal to the one that is looked at."""

_WIDTH = 18  # items looked at on each side of a number

_NOUN = (
    r"(?:answer|answers|guess|choice|pick|number|selection|decision|submission|bid|entry|response"
    r"|final|ans|vote)"
)
_APPROXIMATELY = (
    r"about|around|roughly|approximately|approx|circa|ca|exactly|precisely|just|simply|~|≈"
)
_FILL = (
    rf"(?:(?:{_APPROXIMATELY}|the|a|an|my|number|value|whole|integer|guess|choice|answer|of|on|at|be|is"
    r"|to|with|for|lower|low|small|smaller|higher|safe|conservative|moderate|specific|random"
    r"|reasonable|strategic|relatively|slightly|fairly|somewhat|:|=|→|-|–|—|\||\n|close to|near|something|somewhere|like|x|n|final"
    r"|(?:(?:between|from|in|within|the|range|of) )*§ (?:and|to|-|–|,) §) )*"
)
_ROUND = r"(?:(?:for|in|of|to|on) (?:(?:this|the|that|next|current|our) )?(?:(?:first|second|third|final|next|upcoming) )?(?:round|game|question|task|turn|experiment|contest|today|session|time)(?: #)?)"
_IN_RANGE = r"(?:(?:between|from|in|within) § (?:and|to|-|–) §)"
_WHO = r"(?:i|we|i'll|i'd|i'm|i've|im|ill|id|we'll|we'd)"
_HELPERS = (
    r"will|would|'ll|'d|am|going|to|have|decided|do|then|therefore|thus|now|so|just|simply"
    r"|also|hereby|finally|ultimately|personally|probably|actually|still|rather|only|like|want|wish"
    r"|prefer|instead|think|guess|say|here|shall|definitely|happily|strategically|likely|hence|too"
    r"|confidently|chosen|gonna|intend|plan|most"
)
_VERB = (
    r"(?:choose|choosing|pick|picking|select|selecting|submit|submitting"
    r"|go with|going with|go for|going for|go|settle on|settle for|settling on"
    r"|opt for|opting for|decide on|decide|commit to|stick with|stick to"
    r"|sticking with|bet on|bet|bidding|bid|answer|guess|guessing|say|play|vote for|vote"
    r"|lock in|offer|propose|respond with|reply with|answer with|name|write|report)"
)
_DONE = r"(?:chosen|picked|selected|submitted|decided on|decided|settled on|settled for|gone with)"
_OWN_MODIFIER = (
    r"(?!average|mean|median|expected|predicted|previous|last|earlier|prior|initial|first|past"
    r"|estimate|target|typical|likely|old|former|original|lucky|favorite|favourite|opponent)"
)
_IS = r"(?:is|:|=|→|\||-|–|—|are|will be|would be|shall be|is going to be|remains|stays|being|of|today is|therefore)"
_CHOSEN_CLAUSE = (
    rf"(?:(?:that )?{_WHO}(?: (?:{_HELPERS})){{0,4}} (?:choose|pick|select|submit|go with|enter|guess"
    r"|choosing|picking|submitting|going with|chosen|picked|selected|decided on|settled on|play))"
)
_PARENTHESIS = r"(?:\( (?:[^ ()]+ ){0,6}\) )?"

_LABELS: Final = (
    # "my final answer for this round is"
    rf"(?:^| )(?:my|our) (?:{_OWN_MODIFIER}[a-z'-]+ ){{0,3}}?{_NOUN} (?:{_ROUND} |{_IN_RANGE} |{_CHOSEN_CLAUSE} |to (?:choose|submit|pick) )?{_PARENTHESIS}{_IS} {_FILL}$",
    # "Answer:", "so the final answer is", "the number I choose is"
    rf"(?:^|\n |[-.:;,(|)→—–] |\b(?:so|thus|therefore|hence|and|then|is|the|here|here's|chosen|selected) )"
    rf"(?:(?:the|final|own|chosen|selected) )*{_NOUN} (?:{_ROUND} |{_IN_RANGE} |{_CHOSEN_CLAUSE} )?{_PARENTHESIS}"
    rf"(?:is|:|=|→|\||-|–|—|(?<!number )(?:would be|will be)) {_FILL}$",
    # a heading of its own: "### Answer", "Final answer"
    rf"(?:^|\n )(?:(?:my|the|final|your) )*{_NOUN} \n $",
    rf"<answer> {_FILL}$",
    rf"#### {_FILL}$",
    # other languages: only where the label stands directly before the number
    r"(?:^|\n |[.:;,] )(?:(?:ma|mon|meine|mein|mi|la|le|die|el|a|o|minha|meu|il|mia|mio|het|mijn"
    r"|мой|моё|моя) )*(?:réponse|antwort|respuesta|resposta|risposta|ответ|antwoord|jawaban|cevap"
    r"|svar|odpowiedź|nombre|zahl|número|numero|число|getal|liczba|choix|wahl|elección|escolha"
    r"|scelta|выбор|答案|我的答案|最终答案|答え|回答|我的回答|我的数字|我的选择|数字|정답|답|"
    r"الجواب|الإجابة|إجابتي|جوابي|رقمي|उत्तर|मेरा उत्तर|संख्या|मेरी संख्या|คำตอบ|উত্তর)"
    r" (?::|=|est|ist|es|é|è|—|–|हे|है) (?:# )?$",
    r"(?:^|[.:;,] |\n )(?:je choisis|ich wähle|ich nehme|elijo|yo elijo|escolho|eu escolho|scelgo"
    r"|я выбираю|ik kies|我选择|我选|我的答案是|答案是|我猜|我的数字是|我的选择是|我選擇|أختار"
    r"|اختار) (?:(?:le|die|den|el|o|il|число|:) )*$",
)
_VERBS: Final = (
    # "I choose", "I'll go with", "I would like to submit"
    rf"(?:^| ){_WHO} (?:(?:{_HELPERS}) ){{0,5}}?{_VERB} {_FILL}$",
    rf"(?:^| )(?:i've|i have|i'm|i am|we have|we've) (?:(?:{_HELPERS}) ){{0,3}}?{_DONE} {_FILL}$",
    rf"(?:^| )(?:let me|let's|lets|my \w+ is to|decided to) (?:{_VERB}) {_FILL}$",
    rf"(?:^|\n )i , [^,]{{1,120}} , (?:(?:{_HELPERS}) ){{0,4}}{_VERB} {_FILL}$",
    rf"(?:^| )(?:put me down for|mine is|mine :) {_FILL}$",
)
_BEST = r"\b(?:best|optimal|ideal|correct|right|safest|good|reasonable|smart|wisest|logical)"
_WEAK: Final = (
    rf"{_BEST} (?:[a-z']+ ){{0,3}}?(?:{_NOUN}|bet|move|option|strategy) (?:[a-z']+ ){{0,4}}?{_IS} {_FILL}$",
    rf"{_BEST} (?:[a-z']+ ){{0,6}}?to {_VERB} {_FILL}$",
    rf"(?:^| ){_WHO} (?:[a-z']+ ){{0,3}}?(?:should|could|might|may|can|must) (?:[a-z']+ ){{0,3}}?{_VERB} {_FILL}$",
    rf"(?:^|\n |[,:] |(?:so|thus|therefore|hence|then) ){_VERB} {_FILL}$",
    rf"(?:^| ){_WHO} (?:(?:{_HELPERS}) ){{0,3}}?(?:chose|picked|selected|guessed|went with|went for) {_FILL}$",
    r"(?:^| )(?:in conclusion|to conclude|conclusion|final) (?:, |: )?$",
)
_AFTER_STRONG: Final = (
    rf"^(?:is|will be|would be)(?: going to be)? (?:my|our) (?:{_OWN_MODIFIER}[a-z]+ ){{0,2}}?{_NOUN}\b(?! (?:for|of|about|on) the (?:average|mean|median|group))",
    r"^(?:is|will be|would be) (?:the (?:number|one) |what )(?:i|i'd|i'll|i'm)\b",
    rf"^(?:[,–—-] )?(?:that's|that is|this is) my (?:final )?{_NOUN}\b",
    r"^it is(?: \W|$)",
)
_LABEL_RES: Final = tuple(re.compile(pattern) for pattern in _LABELS)
_VERB_RES: Final = tuple(re.compile(pattern) for pattern in _VERBS)
_WEAK_RES: Final = tuple(re.compile(pattern) for pattern in _WEAK)
_AFTER_STRONG_RES: Final = tuple(re.compile(pattern) for pattern in _AFTER_STRONG)

_CUES: Final = frozenset(
    "answer answers guess choice pick number selection decision submission bid entry response final "
    "value ans vote choose choosing chosen picking picked select selecting selected submit submitting "
    "go going gone settle settled settling opt opting decide decided commit stick sticking bet "
    "bidding guessing say play enter put want lock offer propose respond reply name write report "
    "mine down to chose guessed went conclusion conclude best optimal <answer> #### réponse antwort "
    "respuesta resposta risposta ответ antwoord jawaban cevap svar odpowiedź nombre zahl número numero "
    "число getal liczba choix wahl elección escolha scelta выбор 答案 我的答案 最终答案 答え 回答 我的回答 "
    "我的数字 我的选择 数字 정답 답 الجواب الإجابة إجابتي جوابي رقمي उत्तर संख्या คำตอบ উত্তর choisis wähle "
    "nehme elijo escolho scelgo выбираю kies 我选择 我选 我的答案是 答案是 我猜 我的数字是 我的选择是 我選擇 "
    "أختار اختار".split()
)
"""Without one of these words before it, no pattern for `before` can match."""

_PAST: Final = re.compile(r"\b(?:last|previous|earlier|previously|before|first|initially|round) ")
_CUES_AFTER: Final = frozenset("is will would it that's that this".split())
_LAST: Final = re.compile(r"^(?:in (?:the )?)?(?:last|previous|earlier|previously)\b")
_OTHERS_THINK: Final = re.compile(
    r"\b(?:others|people|they|everyone|everybody|opponents?|players?|participants?|most|one|someone)"
    r"(?: [a-z']+){0,3} (?:think|thinks|expect|expects|believe|believes|assume|assumes|know|knows"
    r"|guess|guesses|say|says|predict|predicts|hope|hopes|suppose)\b[^,;:]*$"
)
ABOUT_OTHERS: Final = re.compile(
    r"^(?:(?:as|for|to be|being|on|is|are|will be|would be|might be|to|of) )+(?:[a-z]+ ){0,4}"
    r"(?:average|mean|median|target|typical|others|everyone|everybody|group|crowd"
    r"|population|opponents?|most people|majority)\b"
)
_SUBJECT: Final = re.compile(
    r"^(?:is|are|was|were|will|would|might|could|should|may|has|must|seems|isn't|won't|wouldn't)\b"
)
_REJECTED: Final = re.compile(
    r"^(?:is|would be|seems|isn't|was) (?:not\b|wrong|too|incorrect|n't|no\b|only if)|^isn't|^wouldn't"
)
_ONLY_IF: Final = re.compile(r"^(?:, )?(?:if|provided|assuming|unless) (?!i (?:may|must|had))")
_VERB_BEFORE: Final = re.compile(rf"{_VERB} {_FILL}$")
_EVEN_IF: Final = frozenset({"even", "as"})


class Strength(IntEnum):
    """How a number is declared."""

    NOT = 0
    CONDITIONAL = 1  # "if everyone picks 50, I choose 33"
    WEAK = 2  # "I could pick 33"
    STRONG = 3  # "my answer is 33"


@dataclass(frozen=True, slots=True)
class Context:
    """What is known about every item of a reply, by its index; made in one pass.

    Attributes:
        negated: a negation stands before it in its clause.
        conditional: an `if` stands before it in its sentence.
    """

    negated: list[bool]
    conditional: list[bool]


def contexts(items: list[Item]) -> Context:
    """Negations and conditions that reach each item."""
    negated, conditional = [], []
    reach = _Reach()
    for i, item in enumerate(items):
        negated.append(reach.is_negated)
        conditional.append(reach.is_conditional)
        if isinstance(item, Quantity):
            reach.previous = ""
        else:
            reach.take(item, items, i)
    return Context(negated, conditional)


class _Reach:
    """How far the last negation and the last condition reach."""

    def __init__(self) -> None:
        self.previous = ""
        self.is_negated = self.is_conditional = False
        self.is_about_others = False  # "people are not rational I choose 12" negates no choice
        self.is_soft = False

    def take(self, item: Token, items: list[Item], i: int) -> None:
        text, previous = item.text, self.previous
        self.previous = text
        if item.kind in {Kind.END, Kind.LINE}:
            self.is_negated = self.is_conditional = self.is_about_others = False
        elif text in words.CLAUSE_BREAKS or text in {",", ";", ":", "(", ")", "→", "—"}:
            self.is_negated = self.is_about_others = False
        elif text in words.OWN_SUBJECTS:
            self.is_negated = self.is_negated and not self.is_soft
            self.is_about_others = False
        elif text in words.SUBJECTS_OF_OTHERS:
            self.is_about_others = True
        elif text in words.NEGATIONS or text.endswith("n't"):
            following = items[i + 1] if i + 1 < len(items) else None
            is_partial = isinstance(following, Token) and following.text in words.PARTIAL
            self.is_soft = self.is_about_others or is_partial
            self.is_negated = True
        elif text == "than" and previous == "rather":
            self.is_negated, self.is_soft = True, False
        elif text in words.CONDITIONS and previous not in _EVEN_IF and not _had_to(items, i):
            self.is_conditional = True


def _had_to(items: list[Item], i: int) -> bool:
    """`if I had to choose, I'd …` is polite and no condition."""
    following = [item.text for item in items[i + 1 : i + 4] if isinstance(item, Token)]
    return following[:1] == ["i"] and following[1:2] in (["had"], ["have"], ["must"], ["may"])


def line_before(items: list[Item], i: int) -> str:
    """The words before item `i` in its sentence; lines may break, `^` is where the pattern starts."""
    parts: list[str] = []
    own = items[i]
    for item in reversed(items[max(0, i - _WIDTH) : i]):
        if isinstance(item, Token) and item.kind is Kind.END:
            break
        is_same = isinstance(item, Quantity) and isinstance(own, Quantity) and item.role == ""
        is_same = is_same and item.value is not None and item.value == own.value
        parts.append(SAME if is_same else _show(item))
    return "".join(f"{part} " for part in reversed(parts))


def line_after(items: list[Item], i: int) -> str:
    """The words after item `i` up to the end of its line or sentence."""
    parts: list[str] = []
    for item in items[i + 1 : i + 1 + _WIDTH]:
        if isinstance(item, Token) and item.kind in {Kind.END, Kind.LINE}:
            parts.append(item.text)
            break
        parts.append(_show(item))
    return " ".join(parts)


def _show(item: Item) -> str:
    if isinstance(item, Token):
        return item.text
    return "§" if item.role == RANGE else "#"


def strength(items: list[Item], i: int, context: Context) -> Strength:
    """How the number at index `i` is declared."""
    if not _may_be_declared(items, i):
        return Strength.NOT
    before, after = line_before(items, i), line_after(items, i)
    found = _match(before, after)
    if found is Strength.NOT or context.negated[i] or _REJECTED.match(after):
        return Strength.NOT
    if _OTHERS_THINK.search(before) or ABOUT_OTHERS.match(after):
        return Strength.NOT
    if context.conditional[i] or _ONLY_IF.match(after) or _is_question(items, i):
        return Strength.CONDITIONAL
    return found


def _match(before: str, after: str) -> Strength:
    by_verb = _VERB_BEFORE.search(before) is not None
    is_subject = by_verb and _SUBJECT.match(after)
    if any(pattern.match(after) for pattern in _AFTER_STRONG_RES):
        return Strength.STRONG
    if any(pattern.search(before) for pattern in _LABEL_RES):
        return Strength.STRONG
    if not is_subject:
        if any(pattern.search(before) for pattern in _VERB_RES) and not _LAST.search(after):
            return Strength.STRONG
        if any(pattern.search(before) for pattern in _WEAK_RES) and not _PAST.search(
            f"{before} {after} "
        ):
            return Strength.WEAK
    return Strength.NOT


def _may_be_declared(items: list[Item], i: int) -> bool:
    """A quick look: is there a word nearby that a pattern needs? Keeps long lists of numbers fast."""
    first, second = (items[k] if k < len(items) else None for k in (i + 1, i + 2))
    if isinstance(first, Token) and first.text in {",", "-", "–", "—"}:
        first = second
    if isinstance(first, Token) and first.text in _CUES_AFTER:
        return True
    return any(isinstance(item, Token) and item.text in _CUES for item in items[max(0, i - 9) : i])


def _is_question(items: list[Item], i: int) -> bool:
    for item in items[i + 1 : i + 1 + _WIDTH]:
        if isinstance(item, Token) and item.kind in {Kind.END, Kind.LINE}:
            return "?" in item.text
    return False
