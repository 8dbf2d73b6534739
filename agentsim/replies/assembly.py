"""Puts tokens together to quantities: sign, digits, percent, fraction, words."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agentsim.replies import vocabulary as words
from agentsim.replies.numbers import NUMBER_WORDS, SCALES, read_digits, read_words, to_float
from agentsim.replies.quantities import (
    FACTOR,
    NAME,
    PAIR,
    RANGE,
    RULE,
    Item,
    Quantity,
    divide,
    fraction_doubt,
)
from agentsim.replies.roles import mark_range, role_of, without_numbering
from agentsim.replies.rule import Rule
from agentsim.replies.tokens import Kind, Token

_BEFORE_A_SIGN: Final = frozenset(["is", "be", "are", "was", "choose", "pick", "guess"])
"""Behind these words a dash with spaces around it may as well be a minus: `it is - 5`."""


def assemble(tokens: list[Token], text: str, rule: Rule) -> list[Item]:
    """Tokens with every number replaced by its quantity; the order stays.

    Args:
        tokens: of the cleaned text.
        text: the cleaned text.
        rule: the game.
    """
    return _Assembly(tokens, text, rule).run()


class _Assembly:
    """One pass over the tokens; `at` is the next one to read, `out` what has been built."""

    def __init__(self, tokens: list[Token], text: str, rule: Rule) -> None:
        self.tokens = tokens
        self.text = text
        self.rule = rule
        self.out: list[Item] = []
        self.at = 0

    def run(self) -> list[Item]:
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind is Kind.NUMBER:
                self._number(token)
            elif token.kind is Kind.FRACTION:
                self._latex_fraction(token)
            elif token.kind is Kind.WORD and self._starts_words(token):
                self._words()
            else:
                self.out.append(token)
                self.at += 1
        return without_numbering(self.out)

    # what stands around

    def _ahead(self, offset: int) -> Token | None:
        index = self.at + offset
        return self.tokens[index] if index < len(self.tokens) else None

    def _ahead_text(self, offset: int) -> str:
        token = self._ahead(offset)
        return "" if token is None else token.text

    def _is_tight(self, offset: int) -> bool:
        """Whether the token at the offset touches the one before it."""
        left, right = self._ahead(offset - 1), self._ahead(offset)
        return left is not None and right is not None and left.end == right.start

    def _last(self, back: int = 1) -> Item | None:
        return self.out[-back] if len(self.out) >= back else None

    def _last_text(self, back: int = 1) -> str:
        item = self._last(back)
        return item.text if isinstance(item, Token) else ""

    # digits

    def _number(self, token: Token) -> None:
        literal, doubt = read_digits(token.text, self.rule)
        start, is_negative, sign_doubt = self._sign(token)
        doubt = doubt or sign_doubt
        self.at += 1
        if not doubt and self._glued_before(token):
            doubt = "the number is part of something longer"
        if self._is_bracketed_pair(token):
            self._add(Quantity(None, PAIR, self._pair_role(token), start, token.end))
            return
        end, doubt, literal = self._tail(token, literal, doubt)
        value = None if doubt else to_float(("-" if is_negative else "") + literal)
        self._add(Quantity(value, doubt, "", start, end, literal=literal))

    def _is_bracketed_pair(self, token: Token) -> bool:
        """`[22,33]` is a list, where `22,33` alone is a decimal comma."""
        around = self.text[token.start - 1 : token.start] + self.text[token.end : token.end + 1]
        return around in {"[]", "()", "{}"} and "," in token.text

    def _pair_role(self, token: Token) -> str:
        low, _, high = token.text.partition(",")
        bounds = [read_digits(part, self.rule)[0] for part in (low, high)]
        is_range = all(bounds) and [to_float(bound) for bound in bounds] == [
            self.rule.low,
            self.rule.high,
        ]
        return RANGE if is_range else ""

    def _glued_before(self, token: Token) -> bool:
        last = self._last()
        if not isinstance(last, Token) or last.end != token.start:
            return False
        if last.kind is Kind.ODD:
            return True
        before = self._last(2)
        is_point = last.kind is Kind.END and last.text == "."
        return is_point and isinstance(before, Token) and before.end == last.start

    def _sign(self, token: Token) -> tuple[int, bool, str]:
        """Where the number starts with its sign, whether it is negative, and what is doubtful."""
        start, is_negative, doubt = self._signed(token)
        last = self._last()
        if isinstance(last, Token) and not doubt:
            if last.kind is Kind.BOUND or last.text == "√":
                doubt = "a comparison is no number"
            elif last.text in words.BOUNDING or (last.text == "to" and self._last_text(2) == "up"):
                doubt = "a limit of the answer is not the answer"
        return start, is_negative, doubt

    def _signed(self, token: Token) -> tuple[int, bool, str]:
        """Takes the sign before a number off what has been built."""
        last, before = self._last(), self._last(2)
        if not isinstance(last, Token) or isinstance(before, Quantity):
            return token.start, False, ""
        is_tight = last.end == token.start
        if last.kind is Kind.DASH:
            return self._dash(token, last, before, is_tight)
        if last.text in {"minus", "negative"}:
            self.out.pop()
            return last.start, True, ""
        if last.text == "+" and (is_tight or before is None or before.kind is Kind.LINE):
            self.out.pop()
            return last.start, False, ""
        return token.start, False, ""

    def _dash(
        self, token: Token, dash: Token, before: Token | None, is_tight: bool
    ) -> tuple[int, bool, str]:
        """A dash is a sign, a bullet, a separator, or part of a name like `GPT-4`."""
        starts_line = before is None or before.kind is Kind.LINE
        touches = before is not None and before.end == dash.start and not starts_line
        is_word = before is not None and before.kind in {Kind.WORD, Kind.LABEL, Kind.BOX}
        sign_doubt = "the dash may be a minus sign"
        if is_tight and touches and is_word:
            if dash.text == "—":
                return token.start, False, ""  # `I choose—22`
            return token.start, False, NAME
        if is_tight:
            if dash.text == "—":
                return token.start, False, sign_doubt
            self.out.pop()
            return dash.start, True, ""
        if dash.text == "−":
            return token.start, False, sign_doubt
        separates = is_word or (before is not None and before.text == ")")
        if before is not None and before.text in _BEFORE_A_SIGN:
            return token.start, False, sign_doubt
        if self.rule.low < 0 or not (starts_line or separates):
            return token.start, False, sign_doubt
        if starts_line:
            self.out.pop()  # a bullet
            return dash.start, False, ""
        return token.start, False, ""

    def _tail(self, token: Token, literal: str, doubt: str) -> tuple[int, str, str]:
        """Percent, fraction, letters and whatever else belongs to the number; moves `at`."""
        end = token.end
        after = self._ahead(0)
        if after is None:
            return end, doubt, literal
        if after.kind is Kind.PERCENT or self._is_percent_word():
            return self._percent(literal, doubt)
        if after.text == "/" or (after.text == "out" and self._ahead_text(1) == "of"):
            return self._fraction(token, literal, doubt)
        following = self._ahead(1)
        if after.kind is Kind.ODD:
            return end, doubt or "a raised or unusual digit follows", literal
        if self._has_more_words():
            return end, doubt or "words after the digits change the number", literal
        if not self._is_tight(0):
            return end, doubt, literal
        if after.kind is Kind.WORD and after.text[0].isalpha() and after.text[0] < "ԯ":
            doubt = doubt or "letters are attached to the number"
        elif (
            after.text == ":" and self._is_tight(1) and following and following.kind is Kind.NUMBER
        ):
            self.at += 2
            return following.end, "a time or a ratio is no number", literal
        elif after.text == "+" and (following is None or following.kind is not Kind.NUMBER):
            doubt = doubt or "a limit of the answer is not the answer"
        return end, doubt, literal

    def _has_more_words(self) -> bool:
        """`22 million`, `22 and a half`, `22 point 5`."""
        text, second, third = (self._ahead_text(offset) for offset in range(3))
        if text in SCALES or text in words.FRACTION_WORDS or text == "dozen":
            return True
        if text == "point":
            following = self._ahead(1)
            return second in NUMBER_WORDS or (
                following is not None and following.kind is Kind.NUMBER
            )
        return text == "and" and bool(words.FRACTION_WORDS & {second, third})

    def _is_percent_word(self) -> bool:
        text = self._ahead_text(0)
        return text in {"percent", "pct"} or (text == "per" and self._ahead_text(1) == "cent")

    def _percent(self, literal: str, doubt: str) -> tuple[int, str, str]:
        self.at += 2 if self._ahead_text(0) == "per" else 1
        if not self.rule.is_percent_scale:
            doubt = doubt or "a percentage in a game that is not on [0, 100]"
        return self.tokens[self.at - 1].end, doubt, literal

    def _fraction(self, token: Token, upper: str, doubt: str) -> tuple[int, str, str]:
        """`a/b` and `a out of b`: the rule's factor, `a` on the game's scale, or not worked out."""
        width = 2 if self._ahead_text(0) == "out" else 1
        divisor = self._ahead(width)
        if divisor is None or divisor.kind is not Kind.NUMBER:
            return token.end, doubt, upper
        lower, lower_doubt = read_digits(divisor.text, self.rule)
        self.at += width + 1
        end, doubt = divisor.end, doubt or lower_doubt
        after = self._ahead(0)
        if after is not None and after.text == "/":
            doubt = doubt or "a date or a chain of fractions is no number"
        if after is not None and after.start == end and after.kind in {Kind.WORD, Kind.ODD}:
            doubt = doubt or "letters are attached to the number"
        if after is not None and after.kind is Kind.PERCENT:
            doubt = doubt or "a percentage of a fraction"
        return end, doubt or fraction_doubt(upper, lower, self.rule), upper

    def _latex_fraction(self, token: Token) -> None:
        """A LaTeX fraction is worked out, unless it restates the rule."""
        upper, _, lower = token.text.partition("/")
        start, is_negative, doubt = self._sign(token)
        self.at += 1
        sign = "-" if is_negative else ""
        value: float | None = None
        if not doubt:
            doubt = fraction_doubt(upper, lower, self.rule)
            if not doubt:
                value = to_float(sign + upper)
            elif doubt != FACTOR:
                value, doubt = divide(to_float(sign + upper), to_float(lower))
        before, after = self._last(), self._ahead(0)
        if isinstance(before, Quantity) and before.end == start:
            value, doubt = None, "a number beside a fraction"
        if after is not None and after.start == token.end and after.kind in {Kind.ODD, Kind.NUMBER}:
            value, doubt = None, "a number beside a fraction"
        if after is not None and after.kind is Kind.PERCENT:
            self.at += 1
            value, doubt = None, doubt or "a percentage of a fraction"
        self._add(Quantity(value, doubt, "", start, token.end))

    # words

    def _starts_words(self, token: Token) -> bool:
        text = token.text
        return text in NUMBER_WORDS or (text == "a" and self._ahead_text(1) in SCALES)

    def _words(self) -> None:
        """A run of number words, with `and` and `point` between them."""
        first, run = self.tokens[self.at], [self.tokens[self.at].text]
        end, self.at = first.end, self.at + 1
        while True:
            step = (
                1 if self._ahead_text(0) == "-" and self._is_tight(0) and self._is_tight(1) else 0
            )
            text, following = self._ahead_text(step), self._ahead_text(step + 1)
            is_link = text in {"and", "point"} and following in NUMBER_WORDS
            if text == "and" and run[-1] not in SCALES:
                is_link = False
            if text not in NUMBER_WORDS and not is_link:
                break
            run.append(text)
            self.at += step + 1
            end = self.tokens[self.at - 1].end
        value = read_words(run)
        doubt = "" if value is not None else "number words that form no number"
        start, is_negative, sign_doubt = self._sign(first)
        value = -value if is_negative and value is not None else value
        if sign_doubt:
            value, doubt = None, sign_doubt
        value, doubt, role = self._after_words(value, doubt)
        end = max(end, self.tokens[self.at - 1].end)
        self._add(Quantity(value, doubt, role, start, end, in_words=True))

    def _after_words(self, value: float | None, doubt: str) -> tuple[float | None, str, str]:
        """`two thirds`, `zero-sum`, `twenty percent`, `one of them`."""
        text = self._ahead_text(0)
        if text == "-" and self._is_tight(0) and self._is_tight(1):
            if self._ahead_text(1) not in words.FRACTION_WORDS:
                return None, "part of a word", "name"
            self.at += 1
            text = self._ahead_text(0)
        if text in words.FRACTION_WORDS:
            self.at += 1
            return None, "a fraction in words is not worked out", RULE
        if self._is_percent_word():
            _, doubt, _ = self._percent("", doubt)
            return (None if doubt else value), doubt, ""
        if text == "and" and (
            self._ahead_text(1) in words.FRACTION_WORDS
            or self._ahead_text(2) in words.FRACTION_WORDS
        ):
            return None, "a fraction in words", ""
        return value, doubt, ""

    def _add(self, quantity: Quantity) -> None:
        """Appends a quantity, with its role."""
        role = quantity.role or role_of(quantity, self.out, self.tokens[self.at : self.at + 2])
        self.out.append(replace(quantity, role=role) if role else quantity)
        mark_range(self.out, self.text, self.rule)
