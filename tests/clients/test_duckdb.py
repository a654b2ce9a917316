"""DuckDB with its iceberg extension, unmodified, against one server."""

import duckdb
import pytest
from harness import ODD_NAMES, duckdb_attached, duckdb_ids
from support.server import Server


@pytest.fixture
def session(server: Server) -> duckdb.DuckDBPyConnection:
    connection = duckdb_attached(server.iceberg)
    connection.execute("CREATE SCHEMA lake.sales")
    connection.execute("CREATE TABLE lake.sales.orders (id BIGINT, word VARCHAR)")
    return connection


def afresh(server: Server) -> duckdb.DuckDBPyConnection:
    """A second session, which has nothing in its caches."""
    return duckdb_attached(server.iceberg)


def test_a_created_table_is_seen_by_another_session(server, session):
    columns = afresh(server).execute("DESCRIBE lake.sales.orders").fetchall()
    assert [(name, type) for name, type, *_ in columns] == [("id", "BIGINT"), ("word", "VARCHAR")]


def test_inserted_rows_are_read_by_another_session(server, session):
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one'), (2, 'two')")
    session.execute("INSERT INTO lake.sales.orders SELECT 3, 'three'")
    assert duckdb_ids(afresh(server), "lake.sales.orders") == [1, 2, 3]


def test_create_table_as_select_brings_its_rows(server, session):
    session.execute("CREATE TABLE lake.sales.copied AS SELECT range AS id FROM range(3)")
    assert duckdb_ids(afresh(server), "lake.sales.copied") == [0, 1, 2]


def test_update_and_delete_change_only_the_rows_that_match(server, session):
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one'), (2, 'two'), (3, 'three')")
    session.execute("UPDATE lake.sales.orders SET word = 'changed' WHERE id = 2")
    session.execute("DELETE FROM lake.sales.orders WHERE id = 3")
    assert sorted(afresh(server).execute("FROM lake.sales.orders").fetchall()) == [(1, "one"), (2, "changed")]


def test_merge_changes_and_adds_rows_in_one_statement(server, session):
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one'), (2, 'two')")
    session.execute("""
        MERGE INTO lake.sales.orders
        USING (VALUES (2, 'changed'), (3, 'three')) AS news(id, word) USING (id)
        WHEN MATCHED THEN UPDATE SET word = news.word
        WHEN NOT MATCHED THEN INSERT VALUES (news.id, news.word)
    """)
    assert sorted(afresh(server).execute("FROM lake.sales.orders").fetchall()) == [(1, "one"), (2, "changed"), (3, "three")]


def test_merge_deletes_the_rows_that_match(server, session):
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one'), (2, 'two')")
    session.execute("MERGE INTO lake.sales.orders USING (VALUES (2)) AS gone(id) USING (id) WHEN MATCHED THEN DELETE")
    assert duckdb_ids(afresh(server), "lake.sales.orders") == [1]


def test_columns_are_added_renamed_and_dropped(server, session):
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one')")
    session.execute("ALTER TABLE lake.sales.orders ADD COLUMN amount INTEGER")
    session.execute("ALTER TABLE lake.sales.orders RENAME COLUMN word TO label")
    session.execute("INSERT INTO lake.sales.orders VALUES (2, 'two', 20)")
    found = afresh(server).execute("SELECT id, label, amount FROM lake.sales.orders ORDER BY id").fetchall()
    assert found == [(1, "one", None), (2, "two", 20)]
    session.execute("ALTER TABLE lake.sales.orders DROP COLUMN label")
    assert afresh(server).execute("FROM lake.sales.orders ORDER BY id").fetchall() == [(1, None), (2, 20)]


def test_a_dropped_table_is_gone_and_its_schema_can_be_dropped(server, session):
    session.execute("DROP TABLE lake.sales.orders")
    with pytest.raises(duckdb.CatalogException):
        afresh(server).execute("FROM lake.sales.orders")
    session.execute("DROP SCHEMA lake.sales")
    schemas = afresh(server).execute("SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'lake'").fetchall()
    assert ("sales",) not in schemas


def test_a_transaction_over_two_tables_shows_both_or_none(server, session):
    session.execute("CREATE TABLE lake.sales.lines (id BIGINT)")
    session.execute("BEGIN")
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one')")
    session.execute("INSERT INTO lake.sales.lines VALUES (10), (11)")
    other = afresh(server)
    assert duckdb_ids(other, "lake.sales.orders") == duckdb_ids(other, "lake.sales.lines") == []
    session.execute("COMMIT")
    other = afresh(server)
    assert duckdb_ids(other, "lake.sales.orders") == [1]
    assert duckdb_ids(other, "lake.sales.lines") == [10, 11]


def test_a_rolled_back_transaction_leaves_nothing(server, session):
    session.execute("BEGIN")
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one')")
    session.execute("ROLLBACK")
    assert duckdb_ids(afresh(server), "lake.sales.orders") == []


def test_a_transaction_that_loses_on_one_table_leaves_the_other_untouched(server, session):
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one')")
    session.execute("CREATE TABLE lake.sales.lines (id BIGINT)")
    session.execute("BEGIN")
    session.execute("INSERT INTO lake.sales.lines VALUES (10)")
    session.execute("DELETE FROM lake.sales.orders WHERE id = 1")
    afresh(server).execute("INSERT INTO lake.sales.orders VALUES (2, 'two')")
    with pytest.raises(duckdb.Error):
        session.execute("COMMIT")
    other = afresh(server)
    assert duckdb_ids(other, "lake.sales.lines") == []
    assert duckdb_ids(other, "lake.sales.orders") == [1, 2]


def test_an_earlier_snapshot_can_be_read(server, session):
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one')")
    [(first,)] = session.execute("SELECT snapshot_id FROM iceberg_snapshots(lake.sales.orders)").fetchall()
    session.execute("INSERT INTO lake.sales.orders VALUES (2, 'two')")
    assert duckdb_ids(afresh(server), f"lake.sales.orders AT (VERSION => {first})") == [1]


def test_a_dot_in_a_schema_is_a_level_of_a_nested_namespace(server, session):
    session.execute('CREATE SCHEMA lake."sales.europe"')
    session.execute('CREATE TABLE lake."sales.europe".orders AS SELECT 1 AS id')
    assert duckdb_ids(afresh(server), 'lake."sales.europe".orders') == [1]
    assert server.call("GET", "/iceberg/v1/lake/namespaces?parent=sales")["namespaces"] == [["sales", "europe"]]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_of_schemas_and_tables_survive_the_whole_life_of_a_table(server, session, name):
    schema = name.replace(".", "")
    table = f'lake."{schema}"."{name}"'
    session.execute(f'CREATE SCHEMA lake."{schema}"')
    session.execute(f"CREATE TABLE {table} (id BIGINT)")
    session.execute(f"INSERT INTO {table} VALUES (1), (2)")
    session.execute(f"DELETE FROM {table} WHERE id = 1")
    session.execute(f"ALTER TABLE {table} ADD COLUMN word VARCHAR")
    other = afresh(server)
    assert duckdb_ids(other, table) == [2]
    assert (schema, name) in other.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
    session.execute(f"DROP TABLE {table}")
    session.execute(f'DROP SCHEMA lake."{schema}"')
    assert (schema,) not in afresh(server).execute("SELECT schema_name FROM duckdb_schemas()").fetchall()
