"""How each client is pointed at a server, and the data that the suites write."""

import os
from pathlib import Path

import duckdb
import pyarrow
from pyiceberg.catalog.rest import RestCatalog
from support.duckdb_extensions import EXTENSIONS, path

# Each character needs care somewhere between a client's identifier and a path segment of a URL.
# `%41` would become `A` if a segment were decoded twice.
ODD_NAMES = ["with space", "plus+sign", "per%41cent", "dot.ted", "dol$lar", "emoji🦆"]


def pyiceberg(endpoint: str, warehouse: str = "lake", **properties: str) -> RestCatalog:
    """A PyIceberg catalog; `endpoint` is the address of the Iceberg protocol."""
    return RestCatalog("anabranch", uri=endpoint, warehouse=warehouse, **properties)


def duckdb_attached(endpoint: str, warehouse: str = "lake") -> duckdb.DuckDBPyConnection:
    """A DuckDB session that has the catalog attached as `lake`."""
    connection = duckdb.connect()
    for extension in EXTENSIONS:
        connection.execute(f"LOAD '{path(extension)}'")
    connection.execute(f"ATTACH '{warehouse}' AS lake (TYPE ICEBERG, ENDPOINT '{endpoint}', AUTHORIZATION_TYPE 'none')")
    return connection


SCHEMA = pyarrow.schema([("id", pyarrow.int64()), ("word", pyarrow.string())])


def rows(*ids: int) -> pyarrow.Table:
    """One row for each id, in the shape of `SCHEMA`."""
    return pyarrow.table({"id": ids, "word": [f"word {id}" for id in ids]}, schema=SCHEMA)


def ids(table) -> list[int]:
    """The ids in a PyIceberg table, sorted: each as often as it is there."""
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def duckdb_ids(connection: duckdb.DuckDBPyConnection, table: str) -> list[int]:
    return [id for (id,) in connection.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()]


def local_path(location: str) -> Path:
    """The folder or file behind a `file://` location."""
    return Path(location.removeprefix("file://"))


def data_files(location: str) -> list[Path]:
    """The data files below a location, whose folders may be going away meanwhile."""
    found = [Path(folder, name) for folder, _, names in os.walk(local_path(location)) for name in names]
    return sorted(file for file in found if file.suffix == ".parquet")


