"""DuckDB's extensions from the Python packages that carry them, so that nothing is downloaded by DuckDB itself."""

import importlib.util
import shutil
import sys
from pathlib import Path

import duckdb

EXTENSIONS = ("avro", "httpfs", "icu", "parquet", "iceberg")


def path(extension: str) -> Path:
    package = importlib.util.find_spec(f"duckdb_extension_{extension}").submodule_search_locations[0]
    return Path(package) / "extensions" / f"v{duckdb.__version__}" / f"{extension}.duckdb_extension"


def lay_out(directory: Path) -> None:
    """Fills an extension directory, from which `INSTALL iceberg; LOAD iceberg` work offline."""
    platform = duckdb.connect().execute("PRAGMA platform").fetchone()[0]
    folder = directory / f"v{duckdb.__version__}" / platform
    folder.mkdir(parents=True)
    for extension in EXTENSIONS:
        shutil.copy(path(extension), folder)


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
