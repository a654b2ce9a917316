"""Following a page's tour as a newcomer would: a shell in a fresh copy, a home of one's own, the default port."""

import os
import shlex
import socket
import sys
from pathlib import Path

from . import tour
from .processes import end_group, running

ADDRESS = "127.0.0.1:8181"
BUILD_AND_START_SECONDS = 900
TESTS = Path(__file__).resolve().parents[1]


def port_is_taken() -> bool:
    host, port = ADDRESS.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def follow(page: str, folder: Path, home: Path, cargo_target: Path) -> int:
    """Runs the tour of a page of `folder` in that folder, then ends the server that it started; answers the shell's exit status."""
    probe = [sys.executable, "-B", "-m", "support.ready", f"http://{ADDRESS}", str(BUILD_AND_START_SECONDS)]
    text = (folder / page).read_text()
    script = tour.script(page, text, f"PYTHONPATH={shlex.quote(str(TESTS))} {shlex.join(probe)}")
    with running(["bash", "-c", script], folder, environment(home, cargo_target), start_new_session=True) as shell:
        try:
            return shell.wait()
        finally:
            end_group(shell.pid)


def environment(home: Path, cargo_target: Path) -> dict[str, str]:
    """The environment of this run with another home, but the same toolchain, caches and build."""
    real_home = Path.home()
    kept = {
        "CARGO_HOME": real_home / ".cargo",
        "CARGO_TARGET_DIR": cargo_target,
        "RUSTUP_HOME": real_home / ".rustup",
        "XDG_CACHE_HOME": real_home / ".cache",
    }
    return {name: str(path) for name, path in kept.items()} | dict(os.environ) | {"HOME": str(home)}
