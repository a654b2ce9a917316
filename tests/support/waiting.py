"""Waiting for a condition of another process, with a deadline instead of a guessed pause."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

POLL_SECONDS = 0.02


def wait_until(condition: Callable[[], T], what: str, seconds: float = 30) -> T:
    """Polls `condition` until it answers something true, and returns that."""
    deadline = time.monotonic() + seconds
    while not (outcome := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(POLL_SECONDS)
    return outcome
