"""Small dense ids that are reused."""


class IdPool:
    """Gives out the ids 0, 1, 2, ..., reusing first those that were given back."""

    def __init__(self) -> None:
        self.size = 0  # one more than the largest id ever given out
        self._free: list[int] = []

    def take(self) -> int:
        if self._free:
            return self._free.pop()
        self.size += 1
        return self.size - 1

    def give_back(self, old: int) -> None:
        self._free.append(old)
