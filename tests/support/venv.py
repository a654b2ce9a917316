"""Python environments with every version pinned, rebuilt when their requirements change."""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from . import debian


def ensure(requirements: Path, folder: Path) -> Path:
    """The `bin` folder of an environment that holds exactly what `requirements` lists."""
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    stamp = folder / "requirements.sha256"
    if not (stamp.exists() and stamp.read_text() == wanted):
        build(requirements, folder)
        stamp.write_text(wanted)
    return folder / "bin"


def build(requirements: Path, folder: Path) -> None:
    """Builds the environment anew. The list is complete, so pip resolves nothing and adds nothing."""
    print(f"building {folder.name} from {requirements.name}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    if importlib.util.find_spec("ensurepip") is None:
        debian.install("python3-venv")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--requirement", str(requirements)], check=True)
    subprocess.run([*pip, "check"], check=True)
