"""Programs that a fresh Debian machine lacks are installed from Debian's own packages."""

import os
import shutil
import subprocess


class MissingProgram(RuntimeError):
    """A program is neither here nor can it be installed; says what to do."""


def require(program: str, *packages: str) -> str:
    """The path of `program`, installed from `packages` if there is none."""
    if shutil.which(program) is None:
        install(*packages)
    path = shutil.which(program)
    if path is None:
        raise MissingProgram(f"{program} is missing although {' '.join(packages)} is installed")
    return path


def install(*packages: str) -> None:
    """Installs packages. Recommended packages and questions are left out."""
    as_root([apt_get(), "update", "-qq"])
    as_root([apt_get(), "install", "-y", "-qq", "--no-install-recommends", *packages])


def as_root(command: list[str]) -> None:
    """Runs a command as root, by sudo if need be."""
    if os.geteuid() != 0:
        if shutil.which("sudo") is None:
            raise MissingProgram(f"not root and no sudo here: run as root once: {' '.join(command)}")
        command = ["sudo", "-n", "env", "DEBIAN_FRONTEND=noninteractive", *command]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, check=True, env=environment, stdin=subprocess.DEVNULL)


def apt_get() -> str:
    """The path of apt-get, or what to do without it."""
    path = shutil.which("apt-get")
    if path is None:
        raise MissingProgram("no apt-get here: install PostgreSQL 15 and a JDK 17 by hand, then run again")
    return path
