"""Our dataclasses mean what Python's mean: both make the same classes, and are asked the same."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import pytest

from patchgate import values

MAKERS = (values, dataclasses)


def classes(made_by: Any) -> dict[str, Any]:
    """Make one class of each kind that the package has."""
    dataclass, field = made_by.dataclass, made_by.field

    @dataclass(frozen=True, slots=True)
    class Plain:
        """Some words."""

        one: int
        two: str = "b"
        rest: list[int] = field(default_factory=list, compare=False)
        secret: str = field(default="s", repr=False)
        kept: dict[str, int] = field(default_factory=dict, hash=False)
        shared: ClassVar[int] = 3

        @property
        def double(self) -> int:
            return 2 * self.one

    @dataclass(slots=True)
    class Open:
        one: int = 1
        many: list[int] = field(default_factory=list)

    @dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        one: int
        two: int = 0

    @dataclass(frozen=True)
    class Loose:
        one: int
        two: int = 2
        three: int = field(default=3)
        made: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", self.one + self.two)

    @dataclass(frozen=True, slots=True)
    class Nothing:
        pass

    @dataclass(frozen=True, slots=True)
    class Child(Ordered):
        two: int = 5
        more: int = 6

    @dataclass(frozen=True, slots=True)
    class Named:
        one: int
        kept: list[int] = field(default_factory=list, compare=False, kw_only=True)

    @dataclass(frozen=True, slots=True)
    class After(Named):
        two: int  # type: ignore[misc]

    @dataclass(frozen=True, slots=True)
    class Own:
        one: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    return {each.__name__: each for each in (Plain, Open, Ordered, Loose, Nothing, Child, Named, After, Own)}


OURS, PYTHONS = map(classes, MAKERS)
CALLS: list[Callable[[dict[str, Any]], Any]] = [
    lambda of: of["Plain"](1),
    lambda of: of["Plain"](1, "x", [1], "t", {"a": 1}),
    lambda of: of["Plain"](one=1, rest=[2]),
    lambda of: of["Plain"](),
    lambda of: of["Plain"](1, three=3),
    lambda of: of["Plain"](1, "b", [], "s", {}, 4),
    lambda of: of["Open"](),
    lambda of: of["Open"](3, [4]),
    lambda of: of["Ordered"](1),
    lambda of: of["Loose"](4),
    lambda of: of["Loose"](4, made=5),
    lambda of: of["Nothing"](),
    lambda of: of["Nothing"](1),
    lambda of: of["Child"](1),
    lambda of: of["Child"](1, more=9),
    lambda of: of["Named"](1, kept=[2]),
    lambda of: of["Named"](1, [2]),
    lambda of: of["After"](1, 2),
    lambda of: of["After"](1, 2, kept=[3]),
    lambda of: of["After"](1),
    lambda of: of["Own"](1),
]
QUESTIONS: list[Callable[[Any, Any], Any]] = [
    lambda one, other: repr(one),
    lambda one, other: hash(one) == hash(copy.copy(one)),
    lambda one, other: one == other,
    lambda one, other: one != other,
    lambda one, other: one == copy.deepcopy(one),
    lambda one, other: one == 1,
    lambda one, other: one < other,
    lambda one, other: one >= other,
    lambda one, other: is_refused(setattr, one, "one", 9),
    lambda one, other: is_refused(setattr, one, "unknown", 9),
    lambda one, other: is_refused(delattr, one, "one"),
    lambda one, other: repr(dataclasses.replace(one, one=5)),
    lambda one, other: repr(dataclasses.replace(one, unknown=5)),
    lambda one, other: type(one).__match_args__,
    lambda one, other: getattr(type(one), "__slots__", None),
    lambda one, other: (type(one).__qualname__, "words" in (type(one).__doc__ or "")),
    lambda one, other: [name for name, _ in inspect.signature(type(one)).parameters.items()],
    lambda one, other: one.double,
    lambda one, other: one.shared,
    lambda one, other: one.__dict__,
]


def is_refused(change: Callable[..., None], *arguments: Any) -> bool:
    """Try a change; of a name that is no field Python 3.11 raises `TypeError`, a known fault."""
    try:
        change(*arguments)
    except (AttributeError, TypeError):
        return True
    return False


def answer(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except Exception as error:  # noqa: BLE001 - the kind of error is the answer
        return type(error)


def pairs(of: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    made = [answer(partial(call, of)) for call in CALLS]
    for one in made:
        for other in made:
            yield one, other


def test_every_question_has_the_answer_that_python_s_dataclasses_give() -> None:
    asked = 0
    for number, question in enumerate(QUESTIONS):
        # An answer may have changed what was asked: made anew for each question.
        for (one, other), (that, another) in zip(pairs(OURS), pairs(PYTHONS), strict=True):
            found, wanted = answer(partial(question, one, other)), answer(partial(question, that, another))
            assert found == wanted, (number, one, other)
            asked += 1
    assert asked == len(QUESTIONS) * len(CALLS) ** 2


@pytest.mark.parametrize("made_by", MAKERS)
def test_a_default_that_could_be_changed_is_refused(made_by: Any) -> None:
    with pytest.raises((TypeError, ValueError)):

        @made_by.dataclass(frozen=True, slots=True)
        class Wrong:
            one: list[int] = []  # noqa: RUF012 - that is the question


@values.dataclass(frozen=True, slots=True)
class Kept:
    one: int
    two: tuple[str, ...] = ("a",)


def test_a_frozen_value_survives_pickle_and_copies() -> None:
    kept = Kept(1, ("x", "y"))
    assert pickle.loads(pickle.dumps(kept)) == copy.deepcopy(kept) == copy.copy(kept) == kept
    assert values.asdict(kept) == dataclasses.asdict(
        dataclasses.make_dataclass("K", ["one", "two"])(1, ("x", "y"))
    )
    assert [each.name for each in values.fields(kept)] == ["one", "two"]
    assert values.is_dataclass(kept)
    assert values.is_dataclass(Kept)
    assert not values.is_dataclass(1)
    assert values.replace(kept, one=2) == Kept(2, ("x", "y"))
