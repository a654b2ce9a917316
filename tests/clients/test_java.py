"""Iceberg's own Java client, unmodified. The properties are in `java/CatalogCheck.java` and `java/ReferenceCheck.java`, a
line of output for each."""

from harness import ODD_NAMES, SCHEMA, pyiceberg, rows
from java_client import run_java
from support.server import Server
from trees import Trees


def test_the_java_client_finds_what_it_expects_of_a_catalog(server: Server):
    check("CatalogCheck", server.iceberg, *ODD_NAMES)


def test_the_java_client_works_with_branches_and_tags_of_a_database(server: Server):
    catalog, trees = pyiceberg(server.iceberg), Trees(server, "sales")
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", SCHEMA).append(rows(1, 2))
    catalog.create_table("sales.lines", SCHEMA).append(rows(10))
    trees.branch("draft")
    trees.tag("v1")
    trees.tag("frozen.1.0")
    catalog.rename_table("sales.orders", "sales.bookings")
    catalog.load_table("sales.bookings").append(rows(3))
    with catalog.load_table("sales.bookings").update_schema() as schema:
        schema.delete_column("word")
    catalog.drop_table("sales.lines")
    check("ReferenceCheck", server.iceberg)


def check(program: str, *arguments: str) -> None:
    outcome = run_java(program, *arguments)
    print(outcome.stdout)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
