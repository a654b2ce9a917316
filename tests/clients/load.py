"""Writers that go on through failures and remember what was acknowledged."""

import threading
from collections.abc import Callable

from support.waiting import wait_until

# After a failure a writer lets the server come back instead of trying as fast as it can.
RETRY_SECONDS = 0.05
IDS_PER_WRITER = 1_000_000


class Load:
    """One thread for each function in `writes`; each calls its function with an id of its own, again and again.

    An id is acknowledged when the call returns. Whatever it raises, the outcome is not known.
    """

    def __init__(self, *writes: Callable[[int], None]) -> None:
        self.attempted: set[int] = set()
        self.acknowledged: set[int] = set()
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=work) for work in enumerate(writes)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def until_acknowledged(self, more: int, seconds: float = 60) -> None:
        """Returns when `more` further writes are acknowledged."""
        goal = len(self.acknowledged) + more
        wait_until(lambda: len(self.acknowledged) >= goal, f"{more} more writes are acknowledged", seconds)

    def check(self, found: list[int]) -> None:
        """What is found holds all that was acknowledged, nothing twice, and nothing that nobody wrote."""
        assert sorted(set(found)) == sorted(found), "something was written twice"
        assert self.acknowledged <= set(found), f"lost: {sorted(self.acknowledged - set(found))}"
        assert set(found) <= self.attempted, f"from nowhere: {sorted(set(found) - self.attempted)}"

    def _write(self, number: int, write: Callable[[int], None]) -> None:
        id = number * IDS_PER_WRITER
        while not self._done.is_set():
            id += 1
            self.attempted.add(id)
            try:
                write(id)
                self.acknowledged.add(id)
            except Exception:
                self._done.wait(RETRY_SECONDS)
