"""The processes of a run: ended when their time is over, found when they would be left behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .waiting import wait_until

PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Child:
    pid: int
    command: str


@contextlib.contextmanager
def running(command: list[str], cwd: Path, environment: dict[str, str],
            **options: bool) -> Iterator[subprocess.Popen]:
    """A process that is ended, if it still runs, when its block is left."""
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def end_group(group: int) -> None:
    """Ends all processes of a group that this run made, and waits until they are gone."""
    def gone() -> bool:
        reap_ended()
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
    wait_until(gone, f"the processes of group {group} end")


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent ends, so that none is lost from sight."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def living() -> list[Child]:
    """The children of this process that still run; those that ended are collected on the way."""
    reap_ended()
    return [child for child in map(read_child, process_ids()) if child is not None]


def end_living() -> list[Child]:
    """Kills all that `living` names, each by its id, until nothing is left; answers what was there."""
    found = []
    while children := living():
        found += children
        for child in children:
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
    return found


def reap_ended() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        pass


def process_ids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def read_child(pid: int) -> Child | None:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    parent = int(after_name[1])
    return Child(pid, b" ".join(words).decode(errors="replace").strip()) if parent == os.getpid() else None
