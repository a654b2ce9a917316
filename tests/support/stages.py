"""The stages of `./test`, and the things that they share."""

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from . import java, links, newcomer, venv
from .postgres import Cluster
from .processes import running

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
CLIENTS = ROOT / "tests" / "clients"
ICEBERG_SPECIFICATION = "shared/spec/iceberg-rest-open-api.yaml"
# Always the same folder, and files as old as their originals, so that cargo builds the copy only once.
TOUR_FOLDER = CACHE / "tour" / "anabranch"
# One after the other in one folder: what a tour leaves is there for the next, as for who follows both.
TOURS = ["README.md", "docs/branches.md"]

# Servers that tests stop, fail and kill at named points.
POINTS = ["--features", "anabranch/fault-points"]

# One environment for each set of clients that can live together: name -> its requirements.
VENVS = {
    "iceberg": CLIENTS / "requirements-iceberg.txt",
}


class StageFailed(RuntimeError):
    """A stage found something."""


class StageSkipped(Exception):
    """A stage can't run here; the reason is printed."""


class Bench:
    """What stages share: made at the first use, taken down at the end."""

    def __init__(self, extra: list[str]) -> None:
        self.extra = extra
        self.resources = contextlib.ExitStack()

    @functools.cached_property
    def postgres(self) -> Cluster:
        return self.resources.enter_context(Cluster())

    def venv(self, name: str) -> Path:
        return venv.ensure(VENVS[name], CACHE / "venvs" / name)

    def scratch(self) -> Path:
        """An empty folder that goes away with the run."""
        return Path(self.resources.enter_context(tempfile.TemporaryDirectory(prefix="anabranch-test-")))

    def run(self, *command: str, cwd: Path = ROOT, **environment: str) -> None:
        print("$", " ".join(command), flush=True)
        with running(list(command), cwd, os.environ | environment) as process:
            if status := process.wait():
                raise StageFailed(f"{Path(command[0]).name}: exit status {status}")


def fmt(bench: Bench) -> None:
    """the code is formatted"""
    bench.run("cargo", "fmt", "--all", "--check")


def clippy(bench: Bench) -> None:
    """no compiler or clippy warning in any target"""
    bench.run("cargo", "clippy", "--locked", "--workspace", "--all-targets", *POINTS, *bench.extra, "--", "-D", "warnings")


def docs(bench: Bench) -> None:
    """the API documentation builds; relative links in README.md and docs/ resolve"""
    documents = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if page.exists()]
    if broken := links.broken(documents):
        raise StageFailed("links that lead nowhere:\n" + "\n".join(broken))
    bench.run("cargo", "doc", "--locked", "--workspace", "--no-deps", RUSTDOCFLAGS="-D warnings")


def rust(bench: Bench) -> None:
    """the Rust tests, with PostgreSQL"""
    bench.run("cargo", "test", "--locked", "--workspace", "--no-fail-fast", *POINTS, *bench.extra,
              ANABRANCH_TEST_POSTGRES=bench.postgres.url)


def clients(bench: Bench) -> None:
    """PyIceberg, DuckDB and Iceberg's Java client against the server"""
    python = bench.venv("iceberg") / "python"
    java.require_java()
    jars = java.jars(CLIENTS / "requirements-java.txt", CACHE / "iceberg-java", python)
    bench.run("cargo", "build", "--locked")
    bench.run(
        str(python), "-B", "-m", "pytest", *bench.extra, cwd=CLIENTS,
        ANABRANCH_TEST_POSTGRES=bench.postgres.url, ANABRANCH_TEST_JARS=str(jars),
    )


def spec(bench: Bench) -> None:
    """the server's answers against the Iceberg REST specification"""
    specification = Path(os.environ.get("ANABRANCH_ICEBERG_SPEC", ROOT.parent / ICEBERG_SPECIFICATION))
    if not specification.exists():
        raise StageSkipped("no Iceberg REST specification here: name one by ANABRANCH_ICEBERG_SPEC")
    python = bench.venv("iceberg") / "python"
    bench.run("cargo", "build", "--locked")
    bench.run(str(python), "-B", str(ROOT / "tests" / "spec" / "run.py"), str(specification), *bench.extra)


def readme(bench: Bench) -> None:
    """the tours of README.md and docs/branches.md, pasted block by block into a clean copy of this tree"""
    if newcomer.port_is_taken():
        raise StageFailed(f"the tours need {newcomer.ADDRESS}, where something listens")
    home = bench.scratch()
    bench.run(str(bench.venv("iceberg") / "python"), "-B", str(ROOT / "tests" / "support" / "duckdb_extensions.py"),
              str(home / ".duckdb" / "extensions"))
    copy_tree(TOUR_FOLDER)
    for page in TOURS:
        if status := newcomer.follow(page, TOUR_FOLDER, home, cargo_target=ROOT / "target"):
            raise StageFailed(f"the tour of {page}: exit status {status}")


def copy_tree(target: Path) -> None:
    """Fills `target` with what a clone of this tree would hold, uncommitted changes included."""
    shutil.rmtree(target, ignore_errors=True)
    listing = git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listing.split("\0")):
        if (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


STAGES: dict[str, Callable[[Bench], None]] = {
    stage.__name__: stage for stage in (fmt, clippy, docs, rust, clients, spec, readme)
}
