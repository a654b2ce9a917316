"""The servers that the suites talk to."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import LOCKING_MODES, NO_HISTORY, postgres_store, serving, sqlite_store
from support.postgres import Cluster
from support.server import Server


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The PostgreSQL of the run, or one of this session alone."""
    if url := os.environ.get("ANABRANCH_TEST_POSTGRES"):
        yield url
    else:
        with Cluster() as cluster:
            yield cluster.url


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """One server on SQLite."""
    with serving(sqlite_store(tmp_path), 1, tmp_path) as [server]:
        yield server


@pytest.fixture
def forgetful_server(tmp_path: Path) -> Iterator[Server]:
    """One server on SQLite that retains no history."""
    with serving([*sqlite_store(tmp_path), *NO_HISTORY], 1, tmp_path) as [server]:
        yield server


@pytest.fixture(params=["sqlite", *LOCKING_MODES])
def two_ends(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Two doors to one catalog: the same server twice on SQLite, two servers on PostgreSQL."""
    if request.param == "sqlite":
        server = request.getfixturevalue("server")
        yield server, server
    else:
        store = postgres_store(request.getfixturevalue("postgres_url"), request.param, tmp_path)
        with serving(store, 2, tmp_path) as [first, second]:
            yield first, second


@pytest.fixture(params=LOCKING_MODES)
def three_servers(request: pytest.FixtureRequest, postgres_url: str, tmp_path: Path) -> Iterator[list[Server]]:
    """Three servers on one PostgreSQL."""
    with serving(postgres_store(postgres_url, request.param, tmp_path), 3, tmp_path) as servers:
        yield servers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    """The report of a failed test shows how its servers' logs end."""
    report = yield
    if report.failed and (folder := item.funcargs.get("tmp_path")):
        for log in sorted(folder.glob("server-*.log")):
            last_lines = log.read_text(errors="replace").splitlines()[-30:]
            report.sections.append((log.name, "\n".join(last_lines)))
    return report
