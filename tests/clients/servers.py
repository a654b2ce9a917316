"""Servers on a store of their own. Every test ends with a graceful stop and the standing audit of the store."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from support.postgres import create_database
from support.server import Server

# A dropped table is read by retained history until that is pruned; with these a purge has nothing to wait for.
NO_HISTORY = ["--history-retention", "1ms", "--job-interval", "100ms"]

LOCKING_MODES = {"postgres": "", "postgres-optimistic": "?mode=optimistic"}


def sqlite_store(folder: Path) -> list[str]:
    return ["--data-dir", str(folder / "data")]


def postgres_store(server_url: str, locking_mode: str, folder: Path) -> list[str]:
    database = create_database(server_url)
    return ["--store", database + LOCKING_MODES[locking_mode], "--warehouse", f"file://{folder / 'warehouse'}"]


@contextlib.contextmanager
def serving(store: list[str], count: int, folder: Path) -> Iterator[list[Server]]:
    """Servers on one store; afterwards they stop in good order and the store is audited."""
    servers = [Server(store, folder / f"server-{number}.log") for number in range(count)]
    try:
        for server in servers:
            server.start()
        yield servers
    finally:
        for server in servers:
            if server.process is not None:
                server.stop()
    servers[0].doctor()
