"""Branches, tags and merges of a database, a database to try them on, and what the tests ask about its states."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable

import duckdb
from harness import SCHEMA, duckdb_attached, ids, pyiceberg, rows
from pyiceberg.catalog.rest import RestCatalog
from support.server import Server

DRAFT = "sales$branch_draft"


class Trees:
    """The references of a database, managed through one server."""

    def __init__(self, server: Server, database: str) -> None:
        self.server = server
        self.path = f"/v1/catalogs/lake/databases/{database}/trees"

    def branch(self, name: str, source: str = "main", **more: str) -> dict:
        return self._create(name, "BRANCH", branch(source), more)

    def tag(self, name: str, source: str = "main", **more: str) -> dict:
        return self._create(name, "TAG", branch(source), more)

    def merge(self, source: dict, into: str = "main", modes: dict[str, str] | None = None, **more: object) -> dict:
        """`source` is a `branch(…)` or `tag(…)`; `modes` has a merge mode for each table that needs one."""
        body = {"source": source, **more}
        if modes:
            body["tableMergeModes"] = [{"table": table, "mergeMode": mode} for table, mode in modes.items()]
        return self.server.call("POST", f"{self.path}/{into}/merge", body)["result"]

    def delete(self, name: str, **expected: str) -> dict:
        return self.server.call("DELETE", f"{self.path}/{name}", expected)["reference"]

    def revision(self, name: str) -> str:
        return self.server.call("GET", f"{self.path}/{name}")["reference"]["revision"]

    def names(self) -> dict[str, str]:
        """The type of each reference by its name."""
        listed = self.server.call("GET", self.path)["references"]
        return {reference["name"]: reference["type"] for reference in listed}

    def _create(self, name: str, kind: str, source: dict, more: dict[str, str]) -> dict:
        return self.server.call("POST", self.path, {"name": name, "type": kind, "source": source, **more})["reference"]


def branch(name: str, revision: str | None = None) -> dict:
    return {"type": "BRANCH", "name": name} | ({"revision": revision} if revision else {})


def tag(name: str) -> dict:
    return {"type": "TAG", "name": name}


def outcomes(result: dict) -> dict[str, str]:
    """What a merge did with each table."""
    return {table["table"]: table["outcome"] for table in result["tables"]}


def refusal(call: Callable[[], object]) -> tuple[int, dict]:
    """The status and the error of a call on `/v1` that has to fail."""
    try:
        answer = call()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]
    raise AssertionError(f"expected a refusal, got {answer}")


def state_of(server: Server, namespace: str, table: str) -> str:
    """The header by which every answer about a table names the state that it was taken from."""
    path = f"{server.iceberg}/v1/lake/namespaces/{urllib.request.quote(namespace)}/tables/{table}"
    with urllib.request.urlopen(path, timeout=60) as answer:
        return answer.headers["Anabranch-Revision"]


def picture(catalog: RestCatalog, namespace: str) -> dict[str, tuple]:
    """All there is to see of the tables in a namespace: names, versions, columns, rows."""
    found = {}
    for identifier in catalog.list_tables(namespace):
        table = catalog.load_table(identifier)
        found[identifier[-1]] = (table.metadata_location, table.schema().column_names, ids(table))
    return found


def duckdb_tables(session: duckdb.DuckDBPyConnection, schema: str) -> list[str]:
    return [name for (name,) in session.execute(f'SHOW TABLES FROM lake."{schema}"').fetchall()]


def sales_with_branches(server: Server) -> tuple[RestCatalog, duckdb.DuckDBPyConnection, Trees]:
    """A database with two tables and the branches `draft` and `other`, and how to reach it."""
    catalog, session, trees = pyiceberg(server.iceberg), duckdb_attached(server.iceberg), Trees(server, "sales")
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", SCHEMA).append(rows(1, 2))
    session.execute("CREATE TABLE lake.sales.lines AS SELECT 10::BIGINT AS id, 'ten' AS word")
    trees.branch("draft")
    trees.branch("other")
    return catalog, session, trees
