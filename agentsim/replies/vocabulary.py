"""The words that the rules know, each list with what it is for.

A list is closed on purpose: a reply that says something in other words is asked again, which costs
one request; a word too many here costs a wrong number in the results.
"""

from __future__ import annotations

from typing import Final


def word_set(text: str) -> frozenset[str]:
    """The words of a text that has one blank between them."""
    return frozenset(text.split())


LABELLED: Final = word_set(
    "round rounds player agent level levels step day game session option question part phase "
    "stage iteration turn trial period chapter section scenario case participant group "
    "attempt figure table page item rule example week version strategy opponent team type "
    "person tier"
)
"""`round 3`: the number names a thing and is no candidate."""

COUNTED: Final = word_set(
    "player players people participant participants person persons other others agent agents "
    "rounds times steps levels guessers opponents contestants years year minutes minute hours "
    "days weeks months children kids digits decimals decimal options choices numbers winners "
    "votes strategies iterations students adults words friends competitors humans individuals "
    "members groups teams reasons guesses answers ways seconds cents yo yrs"
)
"""`67 players`: the number counts things and is no candidate."""

COUNT_ADJECTIVES: Final = word_set(
    "other more fellow rational total different human active remaining possible real ai random"
)
"""`67 other players`."""

UNITS_OF_CHOICE: Final = word_set("points point pts pt dollars dollar euros euro units unit")
"""`22 points`: may follow the answer."""

BOUNDING: Final = word_set(
    "than under below above over beyond least most upto almost nearly between within "
    "exceeding beneath maximum minimum max min until till past not"
)
"""`at most 22`, `not 22`: the number is a limit of the answer or excluded, and not the answer."""

BELIEFS: Final = word_set(
    "expect expected expects expecting expectation predict predicted predicts prediction "
    "anticipate anticipated average averages avg mean means median target others other people "
    "everyone everybody they them their most majority players participants opponents typical "
    "typically somebody someone humans crowd group groups population equilibrium nash "
    "rational theoretical theory winner winning estimate estimated estimates forecast likely- "
    "average whoever folks assume assumed assuming believes thinks"
)
"""The number is what somebody else does, or what will come out."""

NEGATIONS: Final = word_set(
    "not never cannot no without refuse avoid avoiding neither nor hardly instead dont wont "
    "cant wouldnt shouldnt decline nobody unlikely against unable reject rejected"
)
"""The number is excluded by what stands before it in its clause. So do words in n't."""

PARTIAL: Final = word_set("everyone everybody all every everything only sure certain many")
"""`not everyone is rational` excludes no number."""

OWN_SUBJECTS: Final = word_set("i i'll i'd i'm i've my")
SUBJECTS_OF_OTHERS: Final = word_set(
    "others people everyone everybody they players participants opponents most all humans"
)

AGES: Final = word_set("aged age ages")
"""`aged 41`."""

CONDITIONS: Final = word_set("if suppose supposing imagine unless imagining pretend hypothetically")
"""What follows in the sentence is no choice yet."""

CLAUSE_BREAKS: Final = word_set(
    "but so then and because since while though although however yet hence thus therefore"
)
"""A negation before one of these says nothing about what stands after it."""

CORRECTIONS: Final = word_set(
    "wait actually scratch correction oops rather reconsider reconsidering sorry revise "
    "revised revising hmm change changed nevermind disregard ignore retract"
)
"""After an answer, these announce another one."""

RETRACTIONS: Final = (
    "scratch that", "never mind", "nevermind", "strike that", "take that back", "take it back",
    "make that", "i mean ", "disregard", "ignore that", "i retract", "that's wrong",
    "that is wrong", "not my answer", "changed my mind", "change my mind",
)  # fmt: skip
"""These take an answer back without another one."""

CHOOSING: Final = word_set(
    "i i'd i'll i'm id ill im we we'd we'll think thinking feel like say saying guess "
    "guessing go going with for choose choosing pick picking select selecting maybe perhaps "
    "probably possibly about around roughly approximately approx circa ca the a an number "
    "answer my is it it's its would be so thus therefore hence ok okay well hmm um uh sure "
    "yes yeah yep alright right here here's me let's us try how what just simply exactly "
    "precisely of to as on final best correct optimal ideal good safe reasonable strategic "
    "based this round game time that that's and but in value integer choice pick bet settle "
    "decide decided believe submit submitting want then now answering mine finally close near "
    "something somewhere honestly personally bid play hey hi hello great interesting fun "
    "thanks thank you certainly absolutely course i've chosen am prefer"
)
"""A lone number may stand after these, and after nothing else, to be the answer."""

ORDINAL_ENDINGS: Final = word_set("st nd rd th")
FRACTION_WORDS: Final = word_set(
    "half halves third thirds quarter quarters fourth fourths fifth fifths sixth sixths "
    "seventh sevenths eighth eighths ninth ninths tenth tenths hundredth hundredths"
)
"""`two thirds` is no 2."""
