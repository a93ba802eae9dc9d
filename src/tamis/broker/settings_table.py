"""A TOML text as tables whose values are checked one by one, with the place of each problem."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tamis.broker.quantities import is_count
from tamis.broker.toml_places import Key, KeyPlace, places
from tamis.errors import ExpressionError, OptionError, TamisError, TextError, did_you_mean

T = TypeVar("T")


class Problems:
    """What is wrong with a text, as it is found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: dict[Key, KeyPlace] = places(text)
        self.found: list[TextError] = []

    def add(self, path: Key, problem: str, hint: str | None = None, *, key: bool = False) -> None:
        """Note a problem with a value, or with its key."""
        place = self.places.get(path)
        if place is None:  # the file as a whole, or something that is not there
            self.found.append(TextError(problem, self.text, 0, 0, hint))
        elif key:
            self.found.append(TextError(problem, self.text, place.key, place.key + 1, hint))
        else:
            end = min(place.end, (self.text + "\n").index("\n", place.start))
            self.found.append(TextError(problem, self.text, place.start, end, hint))

    def add_filter(self, path: Key, error: ExpressionError) -> None:
        """Note a problem inside a filter, at its place if the filter is written as it is."""
        place = self.places[path]
        start = place.start + 1
        if self.text.startswith(error.text, start):
            start, end = start + error.start, start + max(error.end, error.start + 1)
            self.found.append(TextError(error.problem, self.text, start, end, error.hint))
        else:
            self.add(path, str(error))

    def attempt(self, path: Key, call: Callable[..., T], *args: Any, **named: Any) -> T | None:
        """What a call returns; if it raises an error of ours, that is a problem with a value."""
        try:
            return call(*args, **named)
        except ExpressionError as error:
            self.add_filter(path, error)
        except TamisError as error:
            self.add(path, str(error))
        return None


class Table:
    """A table of the file, of which each key is taken once; what is left is not known."""

    def __init__(self, problems: Problems, path: Key, content: Mapping[str, Any]) -> None:
        self.problems = problems
        self.path = path
        self.content = content
        self._known: list[str] = []

    def take(self, key: str, read: Callable[[Any], T], default: T) -> T:
        """The value of a key as `read` gives it, or the default."""
        self._known.append(key)
        if key not in self.content:
            return default
        found = self.problems.attempt((*self.path, key), read, self.content[key])
        return default if found is None else found

    def table(self, key: str) -> "Table":
        """The table with a name; an empty one if it is not there."""
        self._known.append(key)
        return self.inner(key, self.content.get(key, {}))

    def inner(self, key: str, value: object) -> "Table":
        """A value as a table."""
        path = (*self.path, key)
        if isinstance(value, Mapping):
            return Table(self.problems, path, value)
        self.problems.add(path, f"{key} is a table, not {kind_of(value)}")
        return Table(self.problems, path, {})

    def finish(self) -> None:
        """Note the keys that nobody has taken."""
        for key in self.content:
            if key not in self._known:
                hint = did_you_mean(key, self._known)
                path = (*self.path, key)
                self.problems.add(path, f"unknown setting {key!r}", hint, key=True)


def as_text(value: object) -> str:
    """A value that is text."""
    return _of_kind(value, str, "text in quotes")


def one_of(choices: tuple[str, ...]) -> Callable[[object], str]:
    """A reader of a value that is one of the choices."""

    def read(value: object) -> str:
        text = as_text(value)
        if text in choices:
            return text
        raise OptionError(f"expected one of {', '.join(choices)}, got {text!r}")

    return read


def as_truth(value: object) -> bool:
    """A value that is true or false."""
    return _of_kind(value, bool, "true or false")


def as_list(value: object) -> list[Any]:
    """A value that is a list."""
    return _of_kind(value, list, "a list")


def as_texts(value: object) -> list[str]:
    """A value that is a list of texts."""
    return [as_text(one) for one in as_list(value)]


def as_mapping(value: object) -> dict[str, Any]:
    """A value that is a table."""
    return _of_kind(value, dict, "a table")


def as_count(value: object) -> int:
    """A value that is a whole number from 1."""
    if not is_count(value):
        raise OptionError(f"expected a whole number from 1, got {value!r}")
    return value


def as_rate(value: object) -> float:
    """A value that is a number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise OptionError(f"expected a number above 0, got {value!r}")
    return value


def as_amount(value: object) -> float:
    """A value that is a number from 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise OptionError(f"expected a number from 0, got {value!r}")
    return value


def as_share(value: object) -> float:
    """A value that is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise OptionError(f"expected a number from 0 to 1, got {value!r}")
    return value


def _of_kind(value: object, kind: type[T], name: str) -> T:
    if not isinstance(value, kind):
        raise OptionError(f"expected {name}, got {kind_of(value)}")
    return value


def kind_of(value: object) -> str:
    """A value as an error shows it."""
    return "a table" if isinstance(value, Mapping) else repr(value)
