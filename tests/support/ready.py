"""`python -m support.ready URL SECONDS PID`: returns when the server is ready, fails when its process ends first."""

import os
import sys

from .server import is_ready
from .waiting import wait_until


def main(url: str, seconds: str, pid: str) -> None:
    def ready_or_ended() -> bool:
        os.kill(int(pid), 0)
        return is_ready(url)

    wait_until(ready_or_ended, f"{url} is ready", float(seconds))


main(*sys.argv[1:])
