"""One client writes, the other reads: through one server on SQLite, through two on PostgreSQL in both locking modes."""

import threading

import duckdb
import pytest
from harness import SCHEMA, duckdb_attached, duckdb_ids, ids, pyiceberg, rows
from pyiceberg.exceptions import NamespaceNotEmptyError, NoSuchTableError


@pytest.fixture
def ends(two_ends):
    """PyIceberg at the one end, DuckDB at the other."""
    one, other = two_ends
    catalog = pyiceberg(one.iceberg)
    catalog.create_namespace("sales")
    return catalog, duckdb_attached(other.iceberg)


def test_duckdb_reads_what_pyiceberg_wrote(ends):
    catalog, session = ends
    table = catalog.create_table("sales.orders", SCHEMA)
    table.append(rows(1, 2, 3))
    table.overwrite(rows(4))
    assert duckdb_ids(session, "lake.sales.orders") == [4]


def test_pyiceberg_reads_what_duckdb_wrote(ends):
    catalog, session = ends
    session.execute("CREATE TABLE lake.sales.orders AS SELECT range AS id FROM range(4)")
    session.execute("DELETE FROM lake.sales.orders WHERE id = 2")
    session.execute("UPDATE lake.sales.orders SET id = 30 WHERE id = 3")
    assert ids(catalog.load_table("sales.orders")) == [0, 1, 30]


def test_each_continues_what_the_other_began(ends):
    catalog, session = ends
    table = catalog.create_table("sales.orders", SCHEMA)
    for turn in range(3):
        table.refresh().append(rows(turn))
        session.execute(f"INSERT INTO lake.sales.orders VALUES ({turn + 10}, 'from duckdb')")
    assert ids(table) == duckdb_ids(session, "lake.sales.orders") == [0, 1, 2, 10, 11, 12]


def test_a_schema_change_at_one_end_is_the_schema_at_the_other(ends):
    catalog, session = ends
    table = catalog.create_table("sales.orders", SCHEMA)
    session.execute("ALTER TABLE lake.sales.orders ADD COLUMN amount BIGINT")
    assert table.refresh().schema().column_names == ["id", "word", "amount"]
    with table.update_schema() as schema:
        schema.rename_column("amount", "cents")
    assert [name for name, *_ in session.execute("DESCRIBE lake.sales.orders").fetchall()] == ["id", "word", "cents"]


def test_a_rename_and_a_drop_at_one_end_are_seen_at_the_other_at_once(ends):
    catalog, session = ends
    catalog.create_table("sales.orders", SCHEMA).append(rows(1))
    catalog.rename_table("sales.orders", "sales.bookings")
    assert duckdb_ids(session, "lake.sales.bookings") == [1]
    session.execute("DROP TABLE lake.sales.bookings")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("sales.bookings")


def test_a_namespace_that_the_other_end_filled_is_not_empty(ends):
    catalog, session = ends
    session.execute("CREATE TABLE lake.sales.orders (id BIGINT)")
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("sales")


def test_a_transaction_over_two_tables_is_whole_at_the_other_end(ends):
    catalog, session = ends
    orders, lines = catalog.create_table("sales.orders", SCHEMA), catalog.create_table("sales.lines", SCHEMA)
    session.execute("BEGIN")
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one')")
    session.execute("INSERT INTO lake.sales.lines VALUES (10, 'ten')")
    assert ids(orders) == ids(lines) == []
    session.execute("COMMIT")
    assert (ids(orders), ids(lines)) == ([1], [10])


def test_writers_at_both_ends_of_one_table_lose_nothing_that_was_acknowledged(ends):
    catalog, session = ends
    catalog.create_table("sales.orders", SCHEMA, properties={"commit.retry.num-retries": "20"})
    start = threading.Barrier(2)
    acknowledged: list[int] = []

    def write_with_pyiceberg() -> None:
        table = catalog.load_table("sales.orders")
        start.wait()
        for id in range(100, 110):
            table.append(rows(id))
            acknowledged.append(id)

    writer = threading.Thread(target=write_with_pyiceberg)
    writer.start()
    start.wait()
    for id in range(10):
        try:
            session.execute(f"INSERT INTO lake.sales.orders VALUES ({id}, 'from duckdb')")
            acknowledged.append(id)
        except duckdb.Error:
            pass  # It lost the race and says so.
    writer.join()
    assert ids(catalog.load_table("sales.orders")) == sorted(acknowledged)
    assert set(range(100, 110)) <= set(acknowledged)
