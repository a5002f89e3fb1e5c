"""Finds regular expressions whose time grows faster than the text: by their structure, without running them.

Python's ``re`` backtracks. That costs more than a constant for each character of the text only if one stretch of it can
be read in several ways: within one loop (exponential), or by two consecutive loops, or again from each place where a
search begins (polynomial). Such a stretch is searched for in the automaton of the expression, as in Weideman et al.,
"Analyzing Matching Time Behavior of Backtracking Regular Expression Matchers by Using Ambiguity of NFA" (CIAA 2016).

The answer errs on the strict side: assertions count as always true where that gives more ways, atomic groups as plain
ones. Repetitions of up to ``SHORT`` times count as bounded, unless they are repeated themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

SHORT: Final = 64
_COPIES: Final = 3
_RESTART: Final = -1
"""The state in which a search still passes over characters."""
_SAMPLES: Final = "aAzZ059_ \n\t-.,:;/\\\"'<>=@é٣☃"
_IGNORED_STARTS: Final = (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING)
_CATEGORIES: Final[dict[Any, Callable[[str], bool]]] = {
    sre.CATEGORY_DIGIT: str.isdecimal,
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
}
_NEGATED: Final = {
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
}

Word = tuple[str, ...]


class UnreadableError(Exception):
    """The expression has a construct that the automaton cannot represent."""


def pumpable(pattern: str, flags: int = 0, *, is_search: bool, is_full: bool) -> str | None:
    """Return a stretch of text whose repetition slows the expression down; None if its time is linear.

    Args:
        is_search: it may begin anywhere, as for ``search``, ``sub``, ``split`` and ``finditer``.
        is_full: it must reach the end of the text, as for ``fullmatch``.

    Raises:
        UnreadableError: the expression has a back reference.
    """
    automaton = _Automaton.from_pattern(pattern, flags)
    begins_anywhere = is_search and not automaton.is_anchored
    found = automaton.exponential(is_full=is_full) or automaton.polynomial(is_search=begins_anywhere, is_full=is_full)
    return None if found is None else "".join(found)


@dataclass
class _Automaton:
    """Nodes with empty steps between them, and steps that read one character, which are numbered."""

    samples: str
    empty: dict[int, list[tuple[int, bool]]] = field(default_factory=dict)
    """The target nodes, and whether an assertion must hold."""
    reads: dict[int, list[int]] = field(default_factory=dict)
    sets: list[frozenset[str]] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)
    nodes: int = 0
    start: int = 0
    end: int = 0
    is_anchored: bool = False

    @classmethod
    def from_pattern(cls, pattern: str, flags: int) -> _Automaton:
        parsed = parser.parse(pattern, flags)
        flags |= parsed.state.flags
        made = cls("".join(sorted({*_SAMPLES, *_near(parsed), *(c for s in _near(parsed) for c in s.swapcase())})))
        made.start = made.node()
        made.end = made.sequence(parsed, made.start, flags, is_repeated=False)
        first = parsed[0] if len(parsed) else None
        is_multiline = bool(flags & re.MULTILINE)
        made.is_anchored = bool(first and first[0] is sre.AT and first[1] in _IGNORED_STARTS) and not is_multiline
        made.steps = [made._reachable(node) for node in made.behind]
        made.first = made._reachable(made.start)
        made.accepting = [made._ends(node) for node in made.behind]
        return made

    steps: list[dict[int, int]] = field(default_factory=list)
    """By step that reads: the steps that may follow, and in how many ways."""
    first: dict[int, int] = field(default_factory=dict)
    accepting: list[bool] = field(default_factory=list)
    """By step that reads: whether the expression has matched by then, whatever follows."""

    def node(self) -> int:
        self.nodes += 1
        return self.nodes

    def link(self, source: int, target: int, *, asserts: bool = False) -> None:
        self.empty.setdefault(source, []).append((target, asserts))

    def sequence(self, items: Iterable[Any], at: int, flags: int, *, is_repeated: bool) -> int:
        for operation, argument in items:
            at = self.item(operation, argument, at, flags, is_repeated=is_repeated)
        return at

    def item(self, operation: Any, argument: Any, at: int, flags: int, *, is_repeated: bool) -> int:
        if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            return self.repeat(*argument, at=at, flags=flags, is_repeated=is_repeated)
        if operation in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
            _, added, removed, inner = argument if operation is sre.SUBPATTERN else (None, 0, 0, argument)
            return self.sequence(inner, at, (flags | added) & ~removed, is_repeated=is_repeated)
        if operation in (sre.BRANCH, sre.GROUPREF_EXISTS):
            branches = argument[1] if operation is sre.BRANCH else [argument[1], argument[2] or ()]
            return self.branches(branches, at, flags, is_repeated=is_repeated)
        if operation in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
            return self.assertion(operation, argument, at, flags)
        if operation is sre.GROUPREF:
            raise UnreadableError("a back reference")
        return self.read(operation, argument, at, flags)

    def read(self, operation: Any, argument: Any, at: int, flags: int) -> int:
        after = self.node()
        self.reads.setdefault(at, []).append(len(self.sets))
        self.sets.append(frozenset(c for c in self.samples if _takes(operation, argument, c, flags)))
        self.behind.append(after)
        return after

    def branches(self, branches: Iterable[Any], at: int, flags: int, *, is_repeated: bool) -> int:
        after = self.node()
        for branch in branches:
            begin = self.node()
            self.link(at, begin)
            self.link(self.sequence(branch, begin, flags, is_repeated=is_repeated), after)
        return after

    def assertion(self, operation: Any, argument: Any, at: int, flags: int) -> int:
        if operation is not sre.AT and argument[0] > 0:  # a lookahead reads, and leads nowhere
            begin = self.node()
            self.link(at, begin)
            self.sequence(argument[1], begin, flags, is_repeated=False)
        after = self.node()
        self.link(at, after, asserts=True)
        return after

    def repeat(self, least: int, most: int, inner: Any, *, at: int, flags: int, is_repeated: bool) -> int:
        is_loop = most > SHORT or (is_repeated and most > _COPIES and least != most)
        is_inside = is_repeated or most > 1
        for _ in range(min(least, _COPIES)):
            at = self.sequence(inner, at, flags, is_repeated=is_inside)
        after = self.node()
        self.link(at, after)
        if is_loop:
            begin, again = self.node(), self.node()
            self.link(at, begin)
            self.link(self.sequence(inner, begin, flags, is_repeated=True), again)
            self.link(again, begin)
            self.link(again, after)
            return after
        for _ in range(min(most - least, _COPIES)):
            begin = self.node()
            self.link(at, begin)
            at = self.sequence(inner, begin, flags, is_repeated=is_inside)
            self.link(at, after)
        return after

    def _reachable(self, node: int) -> dict[int, int]:
        """Return the possible next steps, with the number of ways to each: 1, or 2 for more."""
        found: dict[int, int] = {}
        for reached in self._ways(node, frozenset()):
            for step in self.reads.get(reached, ()):
                found[step] = min(found.get(step, 0) + 1, 2)
        return found

    def _ways(self, node: int, passed: frozenset[int]) -> Iterator[int]:
        if node in passed:
            return
        yield node
        for target, _ in self.empty.get(node, ()):
            yield from self._ways(target, passed | {node})

    def _ends(self, node: int) -> bool:
        waiting, seen = [node], {node}
        while waiting:
            for target, asserts in self.empty.get(waiting.pop(), ()):
                if not asserts and target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return self.end in seen

    def next(self, step: int, char: str) -> list[int]:
        """Return the steps that may read this character next."""
        after = self.first if step == _RESTART else self.steps[step]
        found = [target for target in after if char in self.sets[target]]
        return [*found, _RESTART] if step == _RESTART else found

    def loops(self) -> dict[int, frozenset[int]]:
        """Return the steps on loops, each with all steps of its loops."""
        reach = {step: _closure(step, lambda each: self.steps[each]) for step in range(len(self.sets))}
        return {
            step: frozenset(other for other in reached if step in reach[other])
            for step, reached in reach.items()
            if step in reached
        }

    def exponential(self, *, is_full: bool) -> Word | None:
        """Return a word that a loop can read in two ways, back to the same step."""
        for step, loop in self.loops().items():
            if all(self.accepting[each] for each in loop) and not is_full:
                continue
            if any(ways > 1 and target in loop for target, ways in self.steps[step].items()):
                return (min(self.sets[step]),)
            apart = self._word((step, step, False), (step, step, True), _within(loop, loop))
            if apart is not None:
                return apart
        return None

    def polynomial(self, *, is_search: bool, is_full: bool) -> Word | None:
        """Return a word that one loop and a later loop can read, and that leads from the former to the latter."""
        loops = self.loops()
        earlier = [*loops, _RESTART] if is_search else [*loops]
        for early in earlier:
            for late in loops:
                if early == late or (self.accepting[late] and not is_full):
                    continue
                within = (loops.get(early, frozenset({_RESTART})), None, loops[late])
                word = self._word((early, early, late), (early, late, late), within)
                if word is not None:
                    return word
        return None

    def _word(self, begin: tuple[Any, ...], goal: tuple[Any, ...], within: Any) -> Word | None:
        """Return a word with which several readers move from one set of steps to another one."""
        waiting: list[tuple[tuple[Any, ...], Word]] = [(begin, ())]
        seen: set[Hashable] = {begin}
        for places, word in waiting:
            for char in self.samples:
                for after in self._moves(places, char, within):
                    if after == goal:
                        return (*word, char)
                    if after not in seen:
                        seen.add(after)
                        waiting.append((after, (*word, char)))
        return None

    def _moves(self, places: tuple[Any, ...], char: str, within: Any) -> Iterator[tuple[Any, ...]]:
        if isinstance(places[-1], bool):
            one, other, apart = places
            for a in self.next(one, char):
                for b in self.next(other, char):
                    if a in within[0] and b in within[1]:
                        yield a, b, apart or a != b
            return
        allowed = [
            [s for s in self.next(place, char) if bounds is None or s in bounds]
            for place, bounds in zip(places, within, strict=True)
        ]
        yield from ((a, b, c) for a in allowed[0] for b in allowed[1] for c in allowed[2])


def _within(*bounds: frozenset[int]) -> tuple[frozenset[int], ...]:
    return bounds


def _closure(begin: int, after: Callable[[int], Iterable[int]]) -> set[int]:
    """Return all that is reachable by at least one step."""
    waiting, seen = [begin], set[int]()
    while waiting:
        for target in after(waiting.pop()):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


def _near(items: Any) -> set[str]:
    """Return the characters at which the set that an expression matches may change."""
    match items:
        case (sre.LITERAL | sre.NOT_LITERAL, int(code)):
            return {chr(code)}
        case (sre.RANGE, (int(low), int(high))):
            return {chr(code) for code in (low, high, max(0, low - 1), min(high + 1, 0x10FFFF))}
        case parser.SubPattern() | list() | tuple():
            return {char for item in items for char in _near(item)}
    return set()


def _takes(operation: Any, argument: Any, char: str, flags: int) -> bool:
    if flags & re.IGNORECASE:
        plain = flags & ~re.IGNORECASE
        return any(
            _takes(operation, argument, each, plain) for each in (char, char.lower(), char.upper()) if len(each) == 1
        )
    if operation is sre.IN:
        is_negated = argument[0][0] is sre.NEGATE
        return any(_takes(kind, value, char, flags) for kind, value in argument[is_negated:]) != is_negated
    if operation is sre.ANY:
        return char != "\n" or bool(flags & re.DOTALL)
    if operation is sre.RANGE:
        return bool(argument[0] <= ord(char) <= argument[1])
    if operation is sre.CATEGORY:
        is_negated = argument in _NEGATED
        return _CATEGORIES[_NEGATED.get(argument, argument)](char) != is_negated
    if operation in (sre.LITERAL, sre.NOT_LITERAL):
        return bool((ord(char) == argument) == (operation is sre.LITERAL))
    raise UnreadableError(str(operation))
