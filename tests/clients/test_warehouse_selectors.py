"""Selectors that a client doesn't send as the one name of a database: split at the dots of a reference's name, or in the
name of the warehouse, where databases keep their plain names. Through PyIceberg and DuckDB; Java is in `test_java.py`.

DuckDB takes every dot in a schema's name for a level of a nested namespace; PyIceberg does so in identifiers that are one
string, and not in tuples.
"""

import duckdb
import pytest
from harness import SCHEMA, duckdb_attached, duckdb_ids, ids, pyiceberg, rows
from pyiceberg.exceptions import BadRequestError, ForbiddenError, NoSuchTableError
from support.server import Server
from trees import DRAFT, duckdb_tables, sales_with_branches


@pytest.fixture
def sales(server: Server):
    return sales_with_branches(server)


def test_references_whose_names_hold_dots_are_found_however_a_client_splits_them(server, sales):
    catalog, session, trees = sales
    trees.branch("rc.1.2")
    trees.tag("v1.0")
    tagged, dotted = "sales$tag_v1.0", "sales$branch_rc.1.2"
    # One string: PyIceberg splits it at every dot. A tuple: it doesn't. DuckDB always splits.
    catalog.load_table(f"{dotted}.orders").append(rows(3))
    catalog.load_table((dotted, "orders")).append(rows(4))
    session.execute(f"INSERT INTO lake.\"{dotted}\".orders VALUES (5, 'five')")
    session.execute(f'CREATE TABLE lake."{dotted}".fresh AS SELECT 6::BIGINT AS id')
    catalog.create_namespace((*dotted.split("."), "europe"))
    catalog.create_table(f"{dotted}.europe.orders", SCHEMA).append(rows(7))
    for found in (catalog.load_table(f"{dotted}.orders"), catalog.load_table((dotted, "orders"))):
        assert ids(found) == [1, 2, 3, 4, 5]
    afresh = duckdb_attached(server.iceberg)
    assert duckdb_ids(afresh, f'lake."{dotted}".orders') == [1, 2, 3, 4, 5]
    assert duckdb_ids(afresh, f'lake."{dotted}.europe".orders') == [7]
    assert ids(catalog.load_table((dotted, "europe", "orders"))) == [7]
    assert [name for *_, name in catalog.list_tables(dotted)] == [name for *_, name in catalog.list_tables((dotted,))]
    assert [name for *_, name in catalog.list_tables((dotted,))] == ["fresh", "lines", "orders"]
    assert ids(catalog.load_table(f"{tagged}.orders")) == duckdb_ids(afresh, f'lake."{tagged}".orders') == [1, 2]
    with pytest.raises(ForbiddenError, match="never changes"):
        catalog.load_table(f"{tagged}.orders").append(rows(3))
    with pytest.raises(duckdb.Error, match="never changes"):
        afresh.execute(f"INSERT INTO lake.\"{tagged}\".orders VALUES (3, 'three')")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("sales$tag_v1.1.orders")
    # Where the shorter name is one, the dot is a level again.
    trees.tag("v1")
    with pytest.raises(NoSuchTableError):
        catalog.load_table(f"{tagged}.orders")
    assert ids(catalog.load_table((tagged, "orders"))) == [1, 2]


def test_a_warehouse_shows_every_database_on_one_branch_under_plain_names(server, sales):
    catalog, session, trees = sales
    catalog.create_namespace("elsewhere")
    catalog.create_table("elsewhere.orders", SCHEMA)
    on_branch, attached = pyiceberg(server.iceberg, "lake$branch_draft"), duckdb_attached(server.iceberg, "lake$branch_draft")
    assert on_branch.list_namespaces() == [("sales",)], "only databases that have the branch"
    assert duckdb_tables(attached, "sales") == ["lines", "orders"]
    on_branch.load_table("sales.orders").append(rows(3))
    attached.execute("INSERT INTO lake.sales.orders VALUES (4, 'four')")
    attached.execute("CREATE TABLE lake.sales.fresh AS SELECT 5::BIGINT AS id")
    on_branch.rename_table("sales.fresh", "sales.fresher")
    on_branch.create_namespace("sales.europe")
    on_branch.create_table("sales.europe.orders", SCHEMA).append(rows(6))
    assert ids(on_branch.load_table("sales.orders")) == ids(catalog.load_table(f"{DRAFT}.orders")) == [1, 2, 3, 4]
    assert duckdb_ids(attached, "lake.sales.fresher") == [5]
    assert duckdb_ids(attached, 'lake."sales.europe".orders') == [6]
    assert ids(catalog.load_table("sales.orders")) == [1, 2]
    assert catalog.list_tables("sales") == [("sales", "lines"), ("sales", "orders")]
    # A selector in the name of a database wins.
    assert ids(on_branch.load_table("sales$branch_main.orders")) == [1, 2]
    assert duckdb_ids(attached, 'lake."sales$branch_other".orders') == [1, 2]
    # What doesn't have the branch isn't there; databases are made in the plain warehouse.
    assert not on_branch.namespace_exists("elsewhere")
    with pytest.raises(NoSuchTableError):
        on_branch.load_table("elsewhere.orders")
    with pytest.raises(duckdb.Error):
        attached.execute("FROM lake.elsewhere.orders")
    with pytest.raises(BadRequestError):
        on_branch.create_namespace("fresh")
    with pytest.raises(duckdb.Error, match="400"):
        attached.execute("CREATE SCHEMA lake.fresh")
    with pytest.raises(BadRequestError):
        on_branch.drop_namespace("sales")


def test_a_warehouse_at_a_tag_is_read_and_never_written(server, sales):
    catalog, session, trees = sales
    trees.tag("v1.0")
    session.execute("INSERT INTO lake.sales.orders VALUES (3, 'three')")
    frozen, attached = pyiceberg(server.iceberg, "lake$tag_v1.0"), duckdb_attached(server.iceberg, "lake$tag_v1.0")
    assert ids(frozen.load_table("sales.orders")) == duckdb_ids(attached, "lake.sales.orders") == [1, 2]
    with pytest.raises(ForbiddenError, match="never changes"):
        frozen.load_table("sales.orders").append(rows(4))
    with pytest.raises(duckdb.Error, match="never changes"):
        attached.execute("INSERT INTO lake.sales.orders VALUES (4, 'four')")
    nowhere = pyiceberg(server.iceberg, "lake$tag_nowhere")
    assert nowhere.list_namespaces() == []
    with pytest.raises(NoSuchTableError):
        nowhere.load_table("sales.orders")
