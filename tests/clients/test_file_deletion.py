"""Clients that delete files by themselves: what branches, tags and earlier states need stays."""

from harness import SCHEMA, duckdb_attached, duckdb_ids, ids, local_path, pyiceberg, rows
from java_client import run_java
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import EqualTo
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.types import LongType
from support.server import Server
from trees import DRAFT, Trees, picture, state_of

ENABLED = "write.metadata.delete-after-commit.enabled"
# With these, PyIceberg deletes after each commit the metadata files that fell out of the log, which holds one.
DELETES = {ENABLED: "true", "write.metadata.previous-versions-max": "1"}


def work_on(table) -> None:
    """A day of commits, each of which lets a metadata file fall out of the log."""
    table.append(rows(10))
    table.append(rows(11))
    table.delete(EqualTo("id", 1))
    with table.update_schema() as schema:
        schema.add_column("more", LongType())
    table.overwrite(rows(12))
    current = table.current_snapshot().snapshot_id
    for snapshot in [one.snapshot_id for one in table.snapshots() if one.snapshot_id != current]:
        table.maintenance.expire_snapshots().by_id(snapshot).commit()


def stored(location: str) -> TableMetadata:
    return TableMetadataUtil.parse_raw(local_path(location).read_text())


def test_pyiceberg_deletes_no_metadata_that_another_reference_or_an_earlier_state_shows(server: Server):
    catalog, trees = pyiceberg(server.iceberg), Trees(server, "sales")
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", SCHEMA, properties=DELETES).append(rows(1, 2))
    catalog.create_table("sales.lines", SCHEMA).append(rows(1, 2))
    trees.branch("draft")
    trees.tag("v1")
    state = f"sales$tag_rev-{state_of(server, 'sales', 'orders')}"
    draft_state = f"sales$tag_rev-{state_of(server, DRAFT, 'orders')}"
    before = picture(catalog, "sales")

    # The property may also come with the client's own commit, whose answer is what the client acts on.
    with catalog.load_table(f"{DRAFT}.lines").transaction() as transaction:
        transaction.set_properties(DELETES)
    for name in ("orders", "lines"):
        work_on(catalog.load_table(f"{DRAFT}.{name}"))
    for namespace in ("sales", "sales$tag_v1", state, draft_state):
        assert picture(pyiceberg(server.iceberg), namespace) == before
    on_draft = picture(catalog, DRAFT)
    assert [shown[2] for shown in on_draft.values()] == [[12], [12]]

    for name in ("orders", "lines"):
        work_on(catalog.load_table(f"sales.{name}"))
    for namespace in ("sales$tag_v1", state, draft_state):
        assert picture(pyiceberg(server.iceberg), namespace) == before
    assert picture(pyiceberg(server.iceberg), DRAFT) == on_draft
    session = duckdb_attached(server.iceberg)
    for namespace, expected in {"sales": [12], DRAFT: [12], "sales$tag_v1": [1, 2], state: [1, 2]}.items():
        assert duckdb_ids(session, f'lake."{namespace}".orders') == expected
    # What is stored says what was set.
    for name in ("orders", "lines"):
        table = catalog.load_table(f"{DRAFT}.{name}")
        assert table.properties[ENABLED] == "false"
        assert stored(table.metadata_location).properties[ENABLED] == "true"


def test_pyiceberg_deletes_no_metadata_of_earlier_states_where_no_branch_was_ever_made(server: Server):
    catalog = pyiceberg(server.iceberg)
    catalog.create_namespace("sales")
    table = catalog.create_table("sales.orders", SCHEMA, properties=DELETES)
    expected = {}
    for count in range(1, 5):
        table.append(rows(count))
        expected[state_of(server, "sales", "orders")] = list(range(1, count + 1))
    work_on(table)
    assert len(expected) == 4
    for state, shown in expected.items():
        assert ids(pyiceberg(server.iceberg).load_table(f"sales$tag_rev-{state}.orders")) == shown
    assert ids(pyiceberg(server.iceberg).load_table("sales.orders")) == [12]


def test_control_what_is_stored_would_have_pyiceberg_delete_the_metadata_of_main(server: Server):
    """Control of the two tests above: the client does delete, by the property and by nothing else."""
    catalog = pyiceberg(server.iceberg)
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", SCHEMA, properties=DELETES).append(rows(1, 2))
    Trees(server, "sales").branch("draft")
    main = local_path(catalog.load_table("sales.orders").metadata_location)
    table = catalog.load_table(f"{DRAFT}.orders")
    table.append(rows(10))
    first, answered_first = stored(table.metadata_location), table.metadata
    table.append(rows(11))
    second, answered_second = stored(table.metadata_location), table.metadata

    content = main.read_bytes()
    # What PyIceberg does after each commit.
    Catalog._delete_old_metadata(table.io, answered_first, answered_second)
    assert main.exists()
    Catalog._delete_old_metadata(table.io, first, second)
    assert not main.exists()
    main.write_bytes(content)


def test_java_expires_nothing_where_branches_share_files(server: Server):
    """The Java client deletes the files of snapshots that it expires, the server none. What it does here is in
    `java/FileDeletion.java`."""
    catalog, trees = pyiceberg(server.iceberg), Trees(server, "sales")
    catalog.create_namespace("sales")
    for name in ("orders", "lines"):
        catalog.create_table(f"sales.{name}", SCHEMA, properties=DELETES).append(rows(1, 2))
    trees.branch("draft")
    trees.tag("v1")
    for namespace in ("sales", DRAFT):
        catalog.load_table(f"{namespace}.orders").overwrite(rows(3))
    state = f"sales$tag_rev-{state_of(server, 'sales', 'orders')}"
    shared = ("sales", "sales$tag_v1", state)
    before = {namespace: picture(catalog, namespace) for namespace in shared}

    # Control: a database of its own, without branches.
    catalog.create_namespace("plain")
    plain = catalog.create_table("plain.orders", SCHEMA)
    plain.append(rows(1, 2))
    expired = local_path(plain.current_snapshot().manifest_list)
    plain.overwrite(rows(3))

    outcome = run_java("FileDeletion", server.iceberg)
    print(outcome.stdout)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert {namespace: picture(pyiceberg(server.iceberg), namespace) for namespace in shared} == before
    assert picture(pyiceberg(server.iceberg), DRAFT).keys() == {"orders"}
    assert ids(pyiceberg(server.iceberg).load_table(f"{DRAFT}.orders")) == [3]
    # The control: there it is the client that deletes, and with that takes earlier states along.
    assert not expired.exists()
    assert ids(pyiceberg(server.iceberg).load_table("plain.orders")) == [3]
