"""Garbage collection over what PyIceberg and DuckDB wrote: every reference stays readable in full."""

import json
import os
import subprocess
import time

from harness import SCHEMA, data_files, duckdb_attached, duckdb_ids, ids, local_path, pyiceberg, rows
from pyiceberg.expressions import EqualTo
from support.server import Server, binary
from support.waiting import wait_until


def make(server: Server, name: str, kind: str) -> None:
    body = {"name": name, "type": kind, "source": {"type": "BRANCH", "name": "main"}}
    server.call("POST", "/v1/catalogs/lake/databases/sales/trees", body)


def age(location: str) -> None:
    """Makes everything below a table's location older than any grace period."""
    old = time.time() - 30 * 24 * 3600
    for path in local_path(location).rglob("*"):
        os.utime(path, (old, old))


def gc(server: Server, *words: str) -> dict:
    command = [str(binary()), "gc", "lake.sales", "--json", "--wait", "--server", server.url, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def expire_all_but_current(table) -> None:
    current = table.refresh().current_snapshot().snapshot_id
    for snapshot in [one.snapshot_id for one in table.snapshots() if one.snapshot_id != current]:
        table.maintenance.expire_snapshots().by_id(snapshot).commit()


def test_gc_removes_what_no_reference_shows_and_nothing_else(forgetful_server):
    server = forgetful_server
    catalog = pyiceberg(server.iceberg)
    catalog.create_namespace("sales")
    main = catalog.create_table("sales.orders", SCHEMA)
    main.append(rows(1, 2, 3))
    duckdb = duckdb_attached(server.iceberg)
    duckdb.execute("DELETE FROM lake.sales.orders WHERE id = 3")
    make(server, "v1", "TAG")
    make(server, "x", "BRANCH")
    branch = catalog.load_table("sales$branch_x.orders")
    branch.append(rows(10))
    main.refresh().overwrite(rows(7))
    duckdb.execute("INSERT INTO lake.sales.orders VALUES (8, 'eight'), (9, 'nine')")
    catalog.load_table("sales.orders").delete(EqualTo("id", 9))
    expire_all_but_current(catalog.load_table("sales.orders"))
    (local_path(main.location()) / "data" / "orphan.parquet").write_bytes(b"left by a writer that died")
    age(main.location())

    def everything() -> list[list[int]]:
        reader = pyiceberg(server.iceberg)
        return [ids(reader.load_table(f"{name}.orders")) for name in ("sales", "sales$tag_v1", "sales$branch_x")]

    shown = [[7, 8], [1, 2], [1, 2, 10]]
    assert everything() == shown

    # Pruning is a job of its own: until it has run, earlier states can still be asked for.
    def dry() -> set[str]:
        return {file["location"].rsplit("/", 1)[1] for file in gc(server, "--dry-run")["files"]}

    wait_until(lambda: len(dry()) > 1, 30)
    planned = dry()
    assert "orphan.parquet" in planned
    before = len(data_files(main.location()))
    run = gc(server)
    assert run["unreadable"] == []
    assert run["removed"] == run["garbage"]
    assert len(data_files(main.location())) < before
    assert everything() == shown
    assert duckdb_ids(duckdb_attached(server.iceberg), "lake.sales.orders") == [7, 8]
    # What only the branch and the tag show goes with them, and main stays.
    for name in ("v1", "x"):
        server.call("DELETE", f"/v1/catalogs/lake/databases/sales/trees/{name}")
    wait_until(lambda: dry() != set(), 30)
    wait_until(lambda: gc(server)["garbage"]["files"] == 0 and len(data_files(main.location())) < 5, 30)
    assert ids(pyiceberg(server.iceberg).load_table("sales.orders")) == [7, 8]


def test_clients_are_told_that_shared_files_are_not_theirs_to_delete(server):
    catalog = pyiceberg(server.iceberg)
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", SCHEMA, properties={"gc.enabled": "true"})
    assert catalog.load_table("sales.orders").properties["gc.enabled"] == "true"
    make(server, "x", "BRANCH")
    shared = catalog.load_table("sales.orders")
    assert shared.properties["gc.enabled"] == "false"
    # A commit brings nothing of it into the stored metadata.
    shared.append(rows(1))
    stored = json.loads(local_path(shared.metadata_location).read_text())
    assert stored["properties"]["gc.enabled"] == "true"
    with shared.transaction() as transaction:
        transaction.set_properties(owner="ada")
    stored = json.loads(local_path(shared.metadata_location).read_text())
    assert stored["properties"] == {"gc.enabled": "true", "owner": "ada"} | {
        key: value for key, value in stored["properties"].items() if key.startswith("write.")
    }
    assert catalog.load_table("sales$branch_x.orders").properties["gc.enabled"] == "false"
    server.call("DELETE", "/v1/catalogs/lake/databases/sales/trees/x")
    assert catalog.load_table("sales.orders").properties["gc.enabled"] == "true"
    assert ids(table) == [1]
