"""Databases named with a selector (`db$branch_x`, `db$tag_v1`, `db$tag_rev-…`), through PyIceberg and DuckDB. What Java
makes of them is in `test_java.py`.

What DuckDB can't do: it lists no views of any Iceberg catalog and creates none, so a view on a branch is PyIceberg's and
Java's.
"""

from collections.abc import Callable

import duckdb
import pytest
from harness import SCHEMA, data_files, duckdb_attached, duckdb_ids, ids, pyiceberg, rows
from pyiceberg.exceptions import (
    BadRequestError,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
)
from pyiceberg.types import LongType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion
from support.server import Server
from support.waiting import wait_until
from trees import DRAFT, branch, duckdb_tables, picture, sales_with_branches, state_of


@pytest.fixture
def sales(server: Server):
    return sales_with_branches(server)


def test_a_consumer_that_knows_only_database_and_tag_finds_all_of_it(server, sales):
    catalog, session, trees = sales
    frozen = picture(catalog, "sales")
    trees.tag("v1")
    catalog.drop_table("sales.lines")
    with catalog.load_table("sales.orders").update_schema() as schema:
        schema.rename_column("word", "label")
        schema.add_column("amount", LongType())
    catalog.rename_table("sales.orders", "sales.bookings")
    catalog.load_table("sales.bookings").delete("id = 1")
    catalog.create_table("sales.lines", SCHEMA)

    # Sessions of their own, with nothing in their caches.
    consumer = pyiceberg(server.iceberg)
    assert picture(consumer, "sales$tag_v1") == frozen
    assert list(frozen) == ["lines", "orders"]
    session = duckdb_attached(server.iceberg)
    assert duckdb_tables(session, "sales$tag_v1") == ["lines", "orders"]
    columns = session.execute('DESCRIBE lake."sales$tag_v1".orders').fetchall()
    assert [(name, type) for name, type, *_ in columns] == [("id", "BIGINT"), ("word", "VARCHAR")]
    joined = 'SELECT count(*), sum(id) FROM (FROM lake."sales$tag_v1".orders UNION ALL FROM lake."sales$tag_v1".lines)'
    assert session.execute(joined).fetchone() == (3, 13)
    assert duckdb_tables(session, "sales") == ["bookings", "lines"]


def change_with_pyiceberg(server: Server) -> None:
    catalog = pyiceberg(server.iceberg)
    catalog.create_table(f"{DRAFT}.fresh", SCHEMA).append(rows(7))
    with catalog.create_table_transaction(f"{DRAFT}.staged", SCHEMA) as transaction:
        transaction.append(rows(8))
    orders = catalog.load_table(f"{DRAFT}.orders")
    with orders.update_schema() as schema:
        schema.rename_column("word", "label")
        schema.add_column("amount", LongType())
    orders.delete("id = 1")
    assert catalog.rename_table(f"{DRAFT}.orders", f"{DRAFT}.bookings").name() == (DRAFT, "bookings")
    catalog.purge_table(f"{DRAFT}.lines")


def change_with_duckdb(server: Server) -> None:
    session = duckdb_attached(server.iceberg)
    for statement in [
        "CREATE TABLE {}.fresh AS SELECT 7::BIGINT AS id",
        "CREATE TABLE {}.staged AS SELECT 8::BIGINT AS id",
        "ALTER TABLE {}.orders RENAME COLUMN word TO label",
        "ALTER TABLE {}.orders ADD COLUMN amount BIGINT",
        "DELETE FROM {}.orders WHERE id = 1",
        "ALTER TABLE {}.orders RENAME TO bookings",
        "DROP TABLE {}.lines",
    ]:
        session.execute(statement.format(f'lake."{DRAFT}"'))


@pytest.mark.parametrize("change", [change_with_pyiceberg, change_with_duckdb])
def test_create_alter_rename_and_drop_on_a_branch_touch_no_other_branch(server, sales, change: Callable[[Server], None]):
    catalog, _, trees = sales
    trees.tag("before", "draft")
    untouched = ("sales", "sales$branch_other", "sales$tag_before")
    before = {namespace: picture(catalog, namespace) for namespace in untouched}
    revision = trees.revision("main")
    change(server)
    assert {namespace: picture(catalog, namespace) for namespace in untouched} == before
    assert trees.revision("main") == revision
    columns_and_rows = {name: seen[1:] for name, seen in picture(catalog, DRAFT).items()}
    assert columns_and_rows.keys() == {"bookings", "fresh", "staged"}
    assert columns_and_rows["bookings"] == (["id", "label", "amount"], [2])
    assert columns_and_rows["staged"][1] == [8]
    trees.merge(branch("draft"))
    assert {name: seen[1:] for name, seen in picture(catalog, "sales").items()} == columns_and_rows


def test_a_purge_on_one_branch_leaves_the_files_that_another_reads(forgetful_server):
    catalog, session, trees = sales_with_branches(forgetful_server)
    trees.tag("v1")
    catalog.purge_table(f"{DRAFT}.orders")
    catalog.purge_table("sales.lines")
    catalog.create_namespace("unversioned")
    decoy = catalog.create_table("unversioned.decoy", SCHEMA)
    decoy.append(rows(1))
    catalog.purge_table("unversioned.decoy")
    wait_until(lambda: not data_files(decoy.location()), "a table that nothing else shows is purged")
    assert ids(catalog.load_table("sales.orders")) == [1, 2]
    assert duckdb_ids(session, 'lake."sales$tag_v1".lines') == [10]
    assert duckdb_ids(session, 'lake."sales$branch_draft".lines') == [10]


def test_snapshots_expired_on_one_branch_are_there_on_another(sales):
    catalog, session, _ = sales
    orders = catalog.load_table(f"{DRAFT}.orders")
    first = orders.current_snapshot().snapshot_id
    orders.overwrite(rows(3))
    orders.maintenance.expire_snapshots().by_id(first).commit()
    assert ids(orders) == [3] and orders.snapshot_by_id(first) is None
    assert ids(catalog.load_table("sales.orders")) == duckdb_ids(session, "lake.sales.orders") == [1, 2]
    assert catalog.load_table("sales.orders").snapshot_by_id(first) is not None


def test_nested_namespaces_are_a_branch_s_own(server, sales):
    catalog, session, trees = sales
    catalog.create_namespace((DRAFT, "europe"))
    catalog.create_table((DRAFT, "europe", "orders"), SCHEMA).append(rows(3))
    session.execute(f'CREATE SCHEMA lake."{DRAFT}.asia"')
    session.execute(f'CREATE TABLE lake."{DRAFT}.asia".orders AS SELECT 4::BIGINT AS id')
    assert catalog.list_namespaces(DRAFT) == [(DRAFT, "asia"), (DRAFT, "europe")]
    assert duckdb_ids(duckdb_attached(server.iceberg), f'lake."{DRAFT}.europe".orders') == [3]
    assert catalog.list_namespaces("sales") == catalog.list_namespaces("sales$branch_other") == []
    with pytest.raises(NoSuchTableError):
        catalog.load_table("sales.europe.orders")
    trees.merge(branch("draft"))
    assert ids(catalog.load_table("sales.asia.orders")) == [4]
    assert catalog.list_namespaces("sales$branch_other") == []


def test_views_are_a_branch_s_own(sales):
    catalog, _, trees = sales
    sql = SQLViewRepresentation(type="sql", sql="SELECT id FROM orders", dialect="duckdb")
    version = ViewVersion(
        version_id=1, schema_id=0, timestamp_ms=1_700_000_000_000, summary={}, default_namespace=[DRAFT],
        representations=[sql],
    )
    made = catalog.create_view(f"{DRAFT}.order_ids", SCHEMA, version)
    assert catalog.list_views(DRAFT) == [(DRAFT, "order_ids")]
    assert catalog.list_views("sales") == []
    with pytest.raises(NoSuchViewError):
        catalog.load_view("sales.order_ids")
    trees.tag("v1", "draft")
    trees.merge(branch("draft"))
    assert catalog.load_view("sales.order_ids").uuid() == made.uuid()
    catalog.drop_view("sales.order_ids")
    assert catalog.load_view("sales$tag_v1.order_ids").sql_for("duckdb").sql == sql.sql


def test_what_never_changes_refuses_every_write_and_says_so(server, sales):
    catalog, session, trees = sales
    trees.tag("v1")
    pin = f"sales$tag_rev-{state_of(server, 'sales', 'orders')}"
    before = picture(catalog, "sales")
    for frozen in ("sales$tag_v1", pin):
        orders = catalog.load_table(f"{frozen}.orders")
        in_pyiceberg = [
            lambda: orders.append(rows(3)),
            lambda: orders.delete("id = 1"),
            lambda: orders.update_schema().add_column("amount", LongType()).commit(),
            lambda: catalog.create_table(f"{frozen}.fresh", SCHEMA),
            lambda: catalog.register_table(f"{frozen}.fresh", orders.metadata_location),
            lambda: catalog.rename_table(f"{frozen}.orders", f"{frozen}.bookings"),
            lambda: catalog.drop_table(f"{frozen}.orders"),
            lambda: catalog.create_namespace((frozen, "europe")),
        ]
        for write in in_pyiceberg:
            with pytest.raises(ForbiddenError, match="never changes; write to a branch"):
                write()
        for write in [
            "INSERT INTO {}.orders VALUES (3, 'three')",
            "UPDATE {}.orders SET word = 'changed'",
            "DELETE FROM {}.orders",
            "ALTER TABLE {}.orders ADD COLUMN amount BIGINT",
            "ALTER TABLE {}.orders RENAME TO bookings",
            "CREATE TABLE {}.fresh (id BIGINT)",
            "DROP TABLE {}.orders",
        ]:
            with pytest.raises(duckdb.Error, match="403"):
                session.execute(write.format(f'lake."{frozen}"'))
        assert picture(catalog, frozen) == before
    with pytest.raises(duckdb.Error, match="never changes; write to a branch, such as sales"):
        session.execute("INSERT INTO lake.\"sales$tag_v1\".orders VALUES (3, 'three')")


def test_a_reference_that_is_missing_is_an_error_and_never_main(server, sales):
    catalog, session, trees = sales
    trees.tag("v1")
    for missing in ("sales$branch_nowhere", "sales$tag_nowhere", "sales$branch_v1", "sales$tag_draft", "sales$tag_main"):
        assert not catalog.namespace_exists(missing)
        assert not catalog.table_exists(f"{missing}.orders")
        with pytest.raises(NoSuchNamespaceError):
            catalog.list_tables(missing)
        with pytest.raises(NoSuchTableError):
            catalog.load_table(f"{missing}.orders")
        with pytest.raises(NoSuchNamespaceError):
            catalog.create_table(f"{missing}.fresh", SCHEMA)
        for statement in ("FROM {}.orders", "INSERT INTO {}.orders VALUES (3, 'three')", "CREATE TABLE {}.fresh (id BIGINT)"):
            with pytest.raises(duckdb.Error, match="does not exist|Schema .* not found"):
                session.execute(statement.format(f'lake."{missing}"'))
    assert catalog.list_tables("sales") == [("sales", "lines"), ("sales", "orders")]
    assert ids(catalog.load_table("sales.orders")) == [1, 2]


def test_a_branch_that_is_deleted_is_missing_at_once_for_whoever_has_its_tables_open(server, sales):
    catalog, session, trees = sales
    orders = catalog.load_table(f"{DRAFT}.orders")
    assert duckdb_ids(session, f'lake."{DRAFT}".orders') == [1, 2]
    trees.delete("draft")
    with pytest.raises(NoSuchTableError):
        orders.refresh()
    with pytest.raises(Exception, match="does not exist"):
        orders.append(rows(3))
    with pytest.raises(duckdb.Error):
        session.execute(f"INSERT INTO lake.\"{DRAFT}\".orders VALUES (3, 'three')")
    trees.branch("draft")
    assert ids(catalog.load_table(f"{DRAFT}.orders")) == [1, 2]


def test_the_branch_main_is_the_database_itself(sales):
    catalog, session, _ = sales
    catalog.load_table("sales$branch_main.orders").append(rows(3))
    session.execute("INSERT INTO lake.\"sales$branch_main\".orders VALUES (4, 'four')")
    assert ids(catalog.load_table("sales.orders")) == duckdb_ids(session, "lake.sales.orders") == [1, 2, 3, 4]


def test_listings_of_databases_show_plain_names_only(server, sales):
    catalog, session, trees = sales
    trees.tag("v1")
    duckdb_ids(session, 'lake."sales$tag_v1".orders')
    assert catalog.list_namespaces() == [("sales",)]
    schemas = duckdb_attached(server.iceberg).execute("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'")
    assert schemas.fetchall() == [("sales",)]


def test_a_database_is_not_created_changed_or_dropped_through_a_selector(sales):
    catalog, session, trees = sales
    in_pyiceberg = [
        lambda: catalog.create_namespace("sales$branch_fresh"),
        lambda: catalog.update_namespace_properties(DRAFT, updates={"owner": "ada"}),
        lambda: catalog.drop_namespace(DRAFT),
    ]
    for call in in_pyiceberg:
        with pytest.raises(BadRequestError, match="/trees"):
            call()
    for statement in ('CREATE SCHEMA lake."sales$branch_fresh"', f'DROP SCHEMA lake."{DRAFT}"'):
        with pytest.raises(duckdb.Error, match="/trees"):
            session.execute(statement)
    assert trees.names() == {"draft": "BRANCH", "main": "BRANCH", "other": "BRANCH"}


def test_a_transaction_of_duckdb_over_two_branches_changes_both_or_none(server, sales):
    _, session, trees = sales
    insert = "INSERT INTO lake.\"{}\".orders VALUES ({}, 'both')"
    session.execute("BEGIN")
    session.execute(insert.format("sales", 3))
    session.execute(insert.format(DRAFT, 4))
    session.execute("COMMIT")
    session.execute("BEGIN")
    session.execute(insert.format("sales", 5))
    session.execute(insert.format("sales$branch_other", 6))
    trees.delete("other")
    with pytest.raises(duckdb.Error):
        session.execute("COMMIT")
    afresh = duckdb_attached(server.iceberg)
    assert duckdb_ids(afresh, "lake.sales.orders") == [1, 2, 3]
    assert duckdb_ids(afresh, f'lake."{DRAFT}".orders') == [1, 2, 4]
