"""Iceberg's own Java client, unmodified. The properties are in `java/CatalogCheck.java`, a line of output for each."""

from harness import ODD_NAMES
from java_client import run_java
from support.server import Server


def test_the_java_client_finds_what_it_expects_of_a_catalog(server: Server):
    outcome = run_java("CatalogCheck", server.iceberg, *ODD_NAMES)
    print(outcome.stdout)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
