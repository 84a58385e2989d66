"""Formulas of the library, which are plain text, as MathML: `sum_i w_i (y_i - x_i'w)^2 / (2 n)` with its fraction.

Juxtaposed factors are a product. A `/` between spaces divides the product before it by the one after it; without
spaces it divides the single factors beside it. `_` and `^` are scripts, `'` is the transpose, `|x|` a norm. Words are
text. What cannot be read stays as it was written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from markupsafe import Markup

_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?(?:e-?\d+)?)|([A-Za-z]+)|(<=|>=|[-+*/=<>,;:()\[\]|_^'.!]))")
GREEK = {"alpha": "α", "delta": "δ", "phi": "φ", "rho": "ρ", "sigma": "σ", "tau": "τ", "theta": "θ"}
FUNCTIONS = ("exp", "log", "max", "min", "trace")
NAMES = ("weight", "prior", "var", "class", "start", "share", "mean", "loss")  # of numbers, in upright letters
LARGE = {"sum": "∑", "prod": "∏"}
SIGNS = {"-": "−", "<=": "≤", ">=": "≥"}
ENDS = ("+", "-", "=", "<", ">", "<=", ">=", ",", ";", ":", ")", "]", "|")
_CLOSING = {"(": ")", "[": "]", "|": "|"}


@dataclass(frozen=True)
class Token:
    """kind: number, name or sign; is_apart: a space stands before it."""

    kind: str
    text: str
    is_apart: bool


def mathml(formula: str) -> Markup:
    """The formula as inline MathML, in several parts where commas and semicolons allow a line to break.

    >>> print(mathml("x_i / n"))
    <math displaystyle="true"><mfrac><msub><mi>x</mi><mi>i</mi></msub><mi>n</mi></mfrac></math>
    """
    try:
        parts = [
            f'<math displaystyle="true">{_Reader(_tokens(part)).whole()}</math>{escape(mark)}'
            for part, mark in _parts(formula)
        ]
    except ValueError:
        return Markup(f"<code>{escape(formula)}</code>")
    return Markup(" ".join(parts))


_IN_SENTENCE = re.compile(r"g' A\^-1 g / 2|-G / \(H \+ l2\)")


def with_formulas(sentence: str) -> Markup:
    """A sentence of the library with the formulas in it as MathML."""
    ends = [0, *(end for found in _IN_SENTENCE.finditer(sentence) for end in found.span()), len(sentence)]
    pieces = [sentence[begin:end] for begin, end in pairwise(ends)]
    shown = [mathml(piece) if k % 2 else Markup(escape(piece)) for k, piece in enumerate(pieces)]
    return Markup("").join(shown)


def _parts(formula: str) -> list[tuple[str, str]]:
    """(part, mark behind it), cut at commas and semicolons outside of brackets."""
    parts, begin, depth = [], 0, 0
    for place, letter in enumerate(formula):
        depth += (letter in "([") - (letter in ")]")
        if letter in ",;" and depth == 0:
            parts.append((formula[begin:place], letter))
            begin = place + 1
    return [*parts, (formula[begin:], "")]


def _tokens(text: str) -> list[Token]:
    tokens: list[Token] = []
    place = 0
    text = text.rstrip()
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(text[place:])
        kind = ("number", "name", "sign")[found.lastindex - 1] if found.lastindex else ""
        is_apart = found.start(found.lastindex or 0) > place
        words = found[found.lastindex or 0]
        split = kind == "name" and len(words) > 1 and (words.isupper() or (tokens and tokens[-1].text in "_"))
        for k, one in enumerate(words if split else [words]):
            tokens.append(Token(kind, one, is_apart and k == 0))
        place = found.end()
    return tokens


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.place = tokens, 0

    def whole(self) -> str:
        """All tokens; raises ValueError where a bracket is open."""
        made = self.sum("")
        if self.next is not None:
            raise ValueError(self.next.text)
        return made

    @property
    def next(self) -> Token | None:
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def take(self) -> Token:
        token = self.next
        if token is None:
            raise ValueError("the formula ends early")
        self.place += 1
        return token

    def sum(self, closing: str) -> str:
        """Products and the signs between them, up to a closing bracket."""
        made: list[str] = []
        while self.next is not None and self.next.text != closing:
            token = self.next
            if token.kind == "sign" and token.text in ENDS and not (token.text == "|" and closing != "|"):
                if token.text in (")", "]"):
                    raise ValueError(token.text)
                made.append(f"<mo>{escape(SIGNS.get(token.text, token.text))}</mo>")
                self.place += 1
            else:
                made.append(self.product(closing))
        return "".join(made)

    def product(self, closing: str) -> str:
        """Factors beside each other, with fractions."""
        factors: list[str] = []
        while self.next is not None and self.next.text != closing:
            token = self.next
            if self._is_sign_of(factors):
                factors.append("<mo>−</mo>")
                self.place += 1
                continue
            if self._ends(closing):
                break
            if token.text != "/":
                is_beside = token.kind == "number" and factors and factors[-1].endswith("</mn>")
                factors += ["<mo>·</mo>"] if is_beside else []
                factors.append(self.factor())
                continue
            self.place += 1
            if not factors:
                raise ValueError("nothing to divide")
            if token.is_apart:
                above, factors = _row(factors), []
                below = self.divisor(closing)
            else:
                above, below = factors.pop(), self.factor()
            factors.append(f"<mfrac>{_row([_bare(above)])}{_row([_bare(below)])}</mfrac>")
        return "".join(factors)

    def divisor(self, closing: str) -> str:
        """The product behind a `/` between spaces, up to the next one."""
        factors = [self.factor()]
        while (token := self.next) is not None and token.text not in (closing, "/"):
            if self._ends(closing) or (token.kind == "name" and self._is_word(token)):
                break
            factors.append(self.factor())
        return _row(factors)

    def _ends(self, closing: str) -> bool:
        """Whether a product ends here."""
        token = self.next
        assert token is not None
        return token.kind == "sign" and token.text in ENDS and (token.text != "|" or closing == "|")

    def _is_sign_of(self, factors: list[str]) -> bool:
        """Whether a minus belongs to the factor behind it, as in `weight_i -log p`."""
        token, behind = self.next, self.tokens[self.place + 1 : self.place + 2]
        is_minus = token is not None and token.text == "-" and token.is_apart
        return bool(is_minus and factors and behind and not behind[0].is_apart)

    def factor(self) -> str:
        """A number, a name, a sum or a bracket, with its scripts."""
        token = self.take()
        if token.text in LARGE and self.next is not None and self.next.text == "_":
            self.place += 1
            sign = f"<munder><mo>{LARGE[token.text]}</mo>{self.script()}</munder>"
            return f"<mrow>{sign}{self.factor()}</mrow>"
        if token.text in _CLOSING:
            inside = self.sum(_CLOSING[token.text])
            if self.take().text != _CLOSING[token.text]:
                raise ValueError(token.text)
            fence = '<mo fence="true">{}</mo>'
            base = f"<mrow>{fence.format(token.text)}{inside}{fence.format(_CLOSING[token.text])}</mrow>"
        elif token.kind == "number":
            base = _number(token.text)
        elif token.kind == "name":
            base = self.name(token)
        elif token.text in ("*", ".", "!"):
            return f"<mo>{'·' if token.text == '*' else token.text}</mo>"
        else:
            raise ValueError(token.text)
        return self.scripted(base)

    def name(self, token: Token) -> str:
        """A variable in italics, a name in upright letters, or words up to the next that is none."""
        if token.text == "x" and self._is_times():
            return "<mo>×</mo>"
        if len(token.text) == 1:
            return f"<mi>{token.text}</mi>"
        follows = self.next.text if self.next is not None else ""
        if token.text in GREEK:
            return f"<mi>{GREEK[token.text]}</mi>"
        if token.text in FUNCTIONS or (token.text in NAMES and follows in ("_", "(")):
            space = "" if follows in ("_", "(", "^") else '<mspace width="0.2em"/>'
            return f'<mi mathvariant="normal">{escape(token.text)}</mi>{space}'
        words = [token.text]
        while (after := self.next) is not None and after.kind == "name" and self._is_word(after):
            words.append(self.take().text)
        behind = "&nbsp;" if self.next is not None and self.next.text not in (")", "]") else ""
        before = "&nbsp;" if self.place > len(words) else ""
        return f"<mtext>{before}{escape(' '.join(words))}{behind}</mtext>"

    def _is_word(self, token: Token) -> bool:
        """Whether the next token, a name, is a word of the language."""
        behind = self.tokens[self.place + 1] if self.place + 1 < len(self.tokens) else Token("", "", False)
        if token.text == "a":
            return behind.kind == "name" and len(behind.text) > 1
        return not (len(token.text) == 1 or token.text in (*GREEK, *FUNCTIONS) or behind.text in ("_", "^"))

    def _is_times(self) -> bool:
        """Whether the x that was taken last multiplies: it stands alone behind a number or a name."""
        before = self.tokens[self.place - 2 : self.place - 1] if self.place > 1 else []
        is_behind = bool(before) and (before[0].kind == "number" or len(before[0].text) > 1)
        is_alone = self.tokens[self.place - 1].is_apart and self.next is not None and self.next.is_apart
        return is_behind and is_alone

    def scripted(self, base: str) -> str:
        """The base with what `_`, `^` and `'` put beside it."""
        below = above = ""
        while (token := self.next) is not None and token.text in ("_", "^", "'"):
            self.place += 1
            if token.text == "_":
                below = self.script()
            elif token.text == "'":
                above += "<mo>⊤</mo>"
            else:
                above += self.power()
        above = _row([above]) if above else ""
        if below and above:
            return f"<msubsup>{base}{below}{above}</msubsup>"
        return f"<msub>{base}{below}</msub>" if below else f"<msup>{base}{above}</msup>" if above else base

    def script(self) -> str:
        """The letters or digits of a subscript."""
        parts = [self.take()]
        while (token := self.next) is not None and not token.is_apart and token.kind == "name" and len(token.text) == 1:
            parts.append(self.take())
        return _row(
            [_number(part.text) if part.kind == "number" else f"<mi>{escape(part.text)}</mi>" for part in parts]
        )

    def power(self) -> str:
        """What stands behind `^`: a factor, with a sign if it has one."""
        sign = ""
        if self.next is not None and self.next.text == "-":
            sign = "<mo>−</mo>"
            self.place += 1
        return sign + _bare(self.factor())


def _number(text: str) -> str:
    """A number; of one with an exponent the power of ten is written as such."""
    digits, is_power, exponent = text.partition("e")
    if not is_power:
        return f"<mn>{text}</mn>"
    power = f"<msup><mn>10</mn><mn>{str(int(exponent)).replace('-', '−')}</mn></msup>"
    return f"<mrow><mn>{digits}</mn><mo>·</mo>{power}</mrow>"


def _row(parts: list[str]) -> str:
    """One element: MathML's fractions and scripts take no more."""
    joined = "".join(parts)
    return joined if _is_one(joined) else f"<mrow>{joined}</mrow>"


def _is_one(made: str) -> bool:
    """Whether a text is a single element."""
    depth = 0
    for found in re.finditer(r"<(/?)(\w+)[^>]*>", made):
        depth += -1 if found[1] else 1
        if depth == 0:
            return found.end() == len(made)
    return False


def _bare(made: str) -> str:
    """A bracket without its parentheses, which a fraction or an exponent needs none of."""
    begin, end = '<mrow><mo fence="true">(</mo>', '<mo fence="true">)</mo></mrow>'
    if made.startswith(begin) and made.endswith(end) and _is_one(made):
        return f"<mrow>{made[len(begin) : -len(end)]}</mrow>"
    return made
