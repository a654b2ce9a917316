"""The commit takes effect, its answer is lost: whatever the client does next, the data is there once and readable."""

from collections.abc import Iterator

import pytest
import requests
from harness import SCHEMA, duckdb_attached, duckdb_ids, ids, pyiceberg, rows
from java_client import run_java
from lossy_proxy import DROP, LossyProxy
from pyiceberg.exceptions import CommitStateUnknownException, ServiceUnavailableError, TooManyRequestsError
from support.server import Server

LOSSES = [DROP, 500, 503, 429]

COMMIT = r"/transactions/commit$|/tables/[^/]+$"
CREATE = r"/namespaces/[^/]+/tables$|" + COMMIT


@pytest.fixture
def proxy(server: Server) -> Iterator[LossyProxy]:
    with LossyProxy(server.url).running() as proxy:
        yield proxy


@pytest.fixture
def catalog(server: Server):
    """A PyIceberg catalog that speaks to the server itself, with the empty tables `orders` and `lines`."""
    catalog = pyiceberg(server.iceberg)
    catalog.create_namespace("sales")
    for name in ("orders", "lines"):
        catalog.create_table(("sales", name), SCHEMA)
    return catalog


def rows_in(catalog, server: Server, name: str) -> list[int]:
    """The ids in a table, on which PyIceberg and a fresh DuckDB session must agree."""
    found = ids(catalog.load_table(("sales", name)))
    assert duckdb_ids(duckdb_attached(server.iceberg), f"lake.sales.{name}") == found
    return found


@pytest.mark.parametrize("how", LOSSES)
def test_duckdb_inserts_once(server, proxy, catalog, how):
    session = duckdb_attached(proxy.iceberg)
    proxy.lose(COMMIT, how)
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one')")
    assert len(proxy.lost) == 1
    assert rows_in(catalog, server, "orders") == [1]
    session.execute("INSERT INTO lake.sales.orders VALUES (2, 'two')")
    assert rows_in(catalog, server, "orders") == [1, 2]


@pytest.mark.parametrize("how", LOSSES)
def test_duckdb_inserts_once_though_others_commit_before_it_asks_again(server, proxy, catalog, how):
    def others_commit() -> None:
        for id in (10, 11):
            catalog.load_table("sales.orders").append(rows(id))

    session = duckdb_attached(proxy.iceberg)
    proxy.lose(COMMIT, how, meanwhile=others_commit)
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one')")
    assert len(proxy.lost) == 1
    assert rows_in(catalog, server, "orders") == [1, 10, 11]


@pytest.mark.parametrize("how", LOSSES)
def test_duckdb_deletes_once(server, proxy, catalog, how):
    catalog.load_table("sales.orders").append(rows(1, 2))
    session = duckdb_attached(proxy.iceberg)
    proxy.lose(COMMIT, how)
    session.execute("DELETE FROM lake.sales.orders WHERE id = 1")
    assert len(proxy.lost) == 1
    assert rows_in(catalog, server, "orders") == [2]


@pytest.mark.parametrize("how", LOSSES)
def test_duckdb_commits_two_tables_once(server, proxy, catalog, how):
    session = duckdb_attached(proxy.iceberg)
    session.execute("BEGIN")
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one')")
    session.execute("INSERT INTO lake.sales.lines VALUES (10, 'ten'), (11, 'eleven')")
    proxy.lose(COMMIT, how)
    session.execute("COMMIT")
    assert len(proxy.lost) == 1
    assert rows_in(catalog, server, "orders") == [1]
    assert rows_in(catalog, server, "lines") == [10, 11]


@pytest.mark.parametrize("how", LOSSES)
def test_duckdb_commits_two_tables_once_though_others_commit_to_one_of_them(server, proxy, catalog, how):
    session = duckdb_attached(proxy.iceberg)
    session.execute("BEGIN")
    session.execute("INSERT INTO lake.sales.orders VALUES (1, 'one')")
    session.execute("INSERT INTO lake.sales.lines VALUES (10, 'ten')")
    proxy.lose(COMMIT, how, meanwhile=lambda: catalog.load_table("sales.lines").append(rows(20)))
    session.execute("COMMIT")
    assert len(proxy.lost) == 1
    assert rows_in(catalog, server, "orders") == [1]
    assert rows_in(catalog, server, "lines") == [10, 20]


@pytest.mark.parametrize("nth", [1, 2], ids=["staging", "commit"])
@pytest.mark.parametrize("how", LOSSES)
def test_duckdb_creates_a_table_once(server, proxy, catalog, how, nth):
    """DuckDB stages each CREATE and commits it with a second request: either answer may be lost."""
    session = duckdb_attached(proxy.iceberg)
    proxy.lose(CREATE, how, nth)
    session.execute("CREATE TABLE lake.sales.parcels (id BIGINT, word VARCHAR)")
    assert len(proxy.lost) == 1
    session.execute("INSERT INTO lake.sales.parcels VALUES (1, 'one')")
    assert rows_in(catalog, server, "parcels") == [1]


@pytest.mark.parametrize("how", LOSSES)
def test_duckdb_creates_a_table_once_though_others_fill_it_before_it_asks_again(server, proxy, catalog, how):
    session = duckdb_attached(proxy.iceberg)
    proxy.lose(CREATE, how, nth=2, meanwhile=lambda: catalog.load_table("sales.parcels").append(rows(7)))
    session.execute("CREATE TABLE lake.sales.parcels (id BIGINT, word VARCHAR)")
    assert len(proxy.lost) == 1
    assert rows_in(catalog, server, "parcels") == [7]


@pytest.mark.parametrize("how, raised", [
    (DROP, requests.ConnectionError),
    (500, CommitStateUnknownException),
    (503, ServiceUnavailableError),
    (429, TooManyRequestsError),
])
def test_pyiceberg_says_that_it_does_not_know_and_the_rows_are_there_once(server, proxy, catalog, how, raised):
    table = pyiceberg(proxy.iceberg).load_table("sales.orders")
    proxy.lose(COMMIT, how)
    with pytest.raises(raised):
        table.append(rows(1))
    assert len(proxy.lost) == 1
    assert rows_in(catalog, server, "orders") == [1]
    catalog.load_table("sales.orders").append(rows(2))
    assert rows_in(catalog, server, "orders") == [1, 2]


@pytest.mark.parametrize("how, printed", [
    (DROP, "RESTException"),
    (500, "CommitStateUnknownException"),
    (503, "OK"),
    (429, "OK"),
])
def test_java_appends_one_snapshot_and_reports_what_it_knows(proxy, catalog, how, printed):
    proxy.lose(COMMIT, how)
    outcome = run_java("AppendOnce", proxy.iceberg, "sales", "orders")
    assert outcome.stdout.strip() == printed, outcome.stderr
    assert len(proxy.lost) == 1
    assert len(catalog.load_table("sales.orders").snapshots()) == 1
