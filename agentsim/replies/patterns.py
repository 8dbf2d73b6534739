"""The patterns that declare a number to be the answer, anchored at the number.

They are matched on the short lines of `context`: words and signs with one space between them, `#`
for a number, `§` for a bound of the range, and a space at the end before the number.
"""

from __future__ import annotations

import re
from typing import Final

from agentsim.replies.vocabulary import word_set

_NOUN = (
    r"(?:answer|answers|guess|choice|pick|number|selection|decision|submission|bid|entry|response"
    r"|final|ans|vote)"
)
_BETWEEN = r"(?:between|from|in|within|the|range|of)"
_FILL = (
    # what may stand between the words that declare and the number
    r"(?:(?:about|around|roughly|approximately|approx|circa|ca|exactly|precisely|just|simply|~|≈"
    r"|the|a|an|my|number|value|whole|integer|guess|choice|answer|of|on|at|be|is|to|with|for|lower"
    r"|low|small|smaller|higher|safe|conservative|moderate|specific|random|reasonable|strategic"
    r"|relatively|slightly|fairly|somewhat|:|=|→|-|–|—|\||\n|close to|near|something|somewhere"
    rf"|like|x|n|final|(?:{_BETWEEN} )*§ (?:and|to|-|–|,) §) )*"
)
_ROUND = (
    r"(?:(?:for|in|of|to|on) (?:(?:this|the|that|next|current|our) )?"
    r"(?:(?:first|second|third|final|next|upcoming) )?"
    r"(?:round|game|question|task|turn|experiment|contest|today|session|time)(?: #)?)"
)
_IN_RANGE = r"(?:(?:between|from|in|within) § (?:and|to|-|–) §)"
_WHO = r"(?:i|we|i'll|i'd|i'm|i've|im|ill|id|we'll|we'd)"
_HELPERS = (
    r"(?:will|would|'ll|'d|am|going|to|have|decided|do|then|therefore|thus|now|so|just|simply|also"
    r"|hereby|finally|ultimately|personally|probably|actually|still|rather|only|like|want|wish"
    r"|prefer|instead|think|guess|say|here|shall|definitely|happily|strategically|likely|hence|too"
    r"|confidently|chosen|gonna|intend|plan|most)"
)
_VERB = (
    r"(?:choose|choosing|pick|picking|select|selecting|submit|submitting|go with|going with|go for"
    r"|going for|go|settle on|settle for|settling on|opt for|opting for|decide on|decide|commit to"
    r"|stick with|stick to|sticking with|bet on|bet|bidding|bid|answer|guess|guessing|say|play"
    r"|vote for|vote|lock in|offer|propose|respond with|reply with|answer with|name|write|report)"
)
_DONE = r"(?:chosen|picked|selected|submitted|decided on|decided|settled on|settled for|gone with)"
_OWN_MODIFIER = (
    # "my average answer" and "my last guess" are not the answer
    r"(?!average|mean|median|expected|predicted|previous|last|earlier|prior|initial|first|past"
    r"|estimate|target|typical|likely|old|former|original|lucky|favorite|favourite|opponent)"
)
_IS = (
    r"(?:is|:|=|→|\||-|–|—|are|will be|would be|shall be|is going to be|remains|stays|being|of"
    r"|today is|therefore)"
)
_I_CHOOSE = (
    rf"(?:(?:that )?{_WHO}(?: {_HELPERS}){{0,4}} (?:choose|pick|select|submit|go with|enter|guess"
    r"|choosing|picking|submitting|going with|chosen|picked|selected|decided on|settled on|play))"
)
_PARENTHESIS = r"(?:\( (?:[^ ()]+ ){0,6}\) )?"
_SO = r"\b(?:so|thus|therefore|hence|and|then|is|the|here|here's|chosen|selected)"


def _compile(*expressions: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(expression) for expression in expressions)


LABELS: Final = _compile(
    # "my final answer for this round is"
    rf"(?:^| )(?:my|our) (?:{_OWN_MODIFIER}[a-z'-]+ ){{0,3}}?{_NOUN} (?:{_ROUND} |{_IN_RANGE} "
    rf"|{_I_CHOOSE} |to (?:choose|submit|pick) )?{_PARENTHESIS}{_IS} {_FILL}$",
    # "Answer:", "so the final answer is", "the number I choose is"
    rf"(?:^|\n |[-.:;,(|)→—–] |{_SO} )(?:(?:the|final|own|chosen|selected) )*{_NOUN} "
    rf"(?:{_ROUND} |{_IN_RANGE} |{_I_CHOOSE} )?{_PARENTHESIS}"
    rf"(?:is|:|=|→|\||-|–|—|(?<!number )(?:would be|will be)) {_FILL}$",
    # "…, final answer 18"
    r"(?:^|\n |[-.;,(|—–] )(?:(?:my|the|and|so|but) )*final (?:answer|guess|choice|pick|number) $",
    # a heading of its own: "### Answer", "Final answer"
    rf"(?:^|\n )(?:(?:my|the|final|your) )*{_NOUN} \n $",
    rf"<answer> {_FILL}$",
    rf"#### {_FILL}$",
    # other languages: only where the label stands directly before the number
    r"(?:^|\n |[.:;,] )(?:(?:ma|mon|meine|mein|mi|la|le|die|el|a|o|minha|meu|il|mia|mio|het|mijn"
    r"|мой|моё|моя) )*(?:réponse|antwort|respuesta|resposta|risposta|ответ|antwoord|jawaban|cevap"
    r"|svar|odpowiedź|nombre|zahl|número|numero|число|getal|liczba|choix|wahl|elección|escolha"
    r"|scelta|выбор|答案|我的答案|最终答案|答え|回答|我的回答|我的数字|我的选择|数字|정답|답"
    r"|الجواب|الإجابة|إجابتي|جوابي|رقمي|उत्तर|मेरा उत्तर|संख्या|मेरी संख्या|คำตอบ|উত্তর)"
    r" (?::|=|est|ist|es|é|è|—|–|हे|है) (?:# )?$",
    r"(?:^|[.:;,] |\n )(?:je choisis|ich wähle|ich nehme|elijo|yo elijo|escolho|eu escolho|scelgo"
    r"|я выбираю|ik kies|我选择|我选|我的答案是|答案是|我猜|我的数字是|我的选择是|我選擇|أختار"
    r"|اختار) (?:(?:le|die|den|el|o|il|число|:) )*$",
)
"""A label before the number declares it, whatever follows."""

VERBS: Final = _compile(
    # "I choose", "I'll go with", "I would like to submit"
    rf"(?:^| ){_WHO} (?:{_HELPERS} ){{0,5}}?{_VERB} {_FILL}$",
    rf"(?:^| )(?:i've|i have|i'm|i am|we have|we've) (?:{_HELPERS} ){{0,3}}?{_DONE} {_FILL}$",
    rf"(?:^| )(?:let me|let's|lets|my \w+ is to|decided to) {_VERB} {_FILL}$",
    # "I, a farmer, would choose"
    rf"(?:^|\n )i , [^,]{{1,120}} , (?:{_HELPERS} ){{0,4}}{_VERB} {_FILL}$",
    rf"(?:^| )(?:put me down for|mine is|mine :) {_FILL}$",
)
"""The player chooses, in the first person."""

_BEST = r"\b(?:best|optimal|ideal|correct|right|safest|good|reasonable|smart|wisest|logical)"
WEAK: Final = _compile(
    rf"{_BEST} (?:[a-z']+ ){{0,3}}?(?:{_NOUN}|bet|move|option|strategy) "
    rf"(?:[a-z']+ ){{0,4}}?{_IS} {_FILL}$",
    rf"{_BEST} (?:[a-z']+ ){{0,6}}?to {_VERB} {_FILL}$",
    rf"(?:^| ){_WHO} (?:[a-z']+ ){{0,3}}?(?:should|could|might|may|can|must) "
    rf"(?:[a-z']+ ){{0,3}}?{_VERB} {_FILL}$",
    rf"(?:^|\n |[,:] |(?:so|thus|therefore|hence|then) ){_VERB} {_FILL}$",
    rf"(?:^| ){_WHO} (?:{_HELPERS} ){{0,3}}?"
    rf"(?:chose|picked|selected|guessed|went with|went for) {_FILL}$",
    r"(?:^| )(?:in conclusion|to conclude|conclusion|final) (?:, |: )?$",
)
"""These count only where no other number follows: a reasoning may pass through them."""

AFTERWARDS: Final = _compile(
    rf"^(?:is|will be|would be)(?: going to be)? (?:my|our) (?:{_OWN_MODIFIER}[a-z]+ ){{0,2}}?"
    rf"{_NOUN}\b(?! (?:for|of|about|on) the (?:average|mean|median|group))",
    r"^(?:is|will be|would be) (?:the (?:number|one) |what )(?:i|i'd|i'll|i'm)\b",
    rf"^(?:[,–—-] )?(?:that's|that is|this is) my (?:final )?{_NOUN}\b",
    r"^it is(?: \W|$)",
)
"""The declaration follows the number: `22 is my answer`."""

CUES: Final = word_set(
    "answer answers guess choice pick number selection decision submission bid entry "
    "response final ans vote choose choosing chosen picking picked select selecting "
    "selected submit submitting go going gone settle settled settling opt opting "
    "decide decided commit stick sticking bet bidding guessing say play lock offer "
    "propose respond reply name write report mine down to chose guessed went "
    "conclusion conclude best optimal <answer> #### réponse antwort respuesta "
    "resposta risposta ответ antwoord jawaban cevap svar odpowiedź nombre zahl número "
    "numero число getal liczba choix wahl elección escolha scelta выбор 答案 我的答案 最终答案 "
    "答え 回答 我的回答 我的数字 我的选择 数字 정답 답 الجواب الإجابة إجابتي جوابي رقمي उत्तर "
    "संख्या คำตอบ "
    "উত্তর choisis wähle nehme elijo escolho scelgo выбираю kies 我选择 我选 我的答案是 答案是 我猜 "
    "我的数字是 我的选择是 我選擇 أختار اختار"
)
"""Without one of these words before the number, no pattern for what stands before it matches."""

CUES_AFTER: Final = word_set("is will would it that's that this")
"""Without one of these words after the number, nothing in `AFTERWARDS` matches."""

PAST: Final = re.compile(r"\b(?:last|previous|earlier|previously|before|first|initially|round) ")
LAST: Final = re.compile(r"^(?:in (?:the )?)?(?:last|previous|earlier|previously)\b")
OTHERS_THINK: Final = re.compile(
    r"\b(?:others|people|they|everyone|everybody|opponents?|players?|participants?|most|one|someone)"
    r"(?: [a-z']+){0,3} (?:think|thinks|expect|expects|believe|believes|assume|assumes|know|knows"
    r"|guess|guesses|say|says|predict|predicts|hope|hopes|suppose)\b[^,;:]*$"
)
"""`others think I choose 33` declares nothing."""

ABOUT_OTHERS: Final = re.compile(
    r"^(?:(?:as|for|to be|being|on|is|are|will be|would be|might be|to|of) )+(?:[a-z]+ ){0,4}"
    r"(?:average|mean|median|target|typical|others|everyone|everybody|group|crowd"
    r"|population|opponents?|most people|majority)\b"
)
"""`I guess 33 as the average` is about what comes out."""

SUBJECT: Final = re.compile(
    r"^(?:is|are|was|were|will|would|might|could|should|may|has|must|seems|isn't|won't|wouldn't)\b"
)
"""`I guess 33 is …`: the number opens a new clause and is not what the verb before it chooses."""

REJECTED: Final = re.compile(
    r"^(?:is|would be|seems|isn't|was) (?:not\b|wrong|too|incorrect|n't|no\b|only if)"
    r"|^isn't|^wouldn't"
)
ONLY_IF: Final = re.compile(r"^(?:, )?(?:if|provided|assuming|unless) (?!i (?:may|must|had))")
VERB_BEFORE: Final = re.compile(rf"{_VERB} {_FILL}$")
