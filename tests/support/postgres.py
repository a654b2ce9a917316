"""A PostgreSQL of one's own: a throw-away cluster on a free loopback port."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import uuid
from pathlib import Path
from urllib.parse import urlsplit

from . import debian
from .ports import free_port
from .waiting import wait_until

CREATECLUSTER_CONF = Path("/etc/postgresql-common/createcluster.conf")


def binaries() -> Path:
    """The folder with `initdb` and `postgres`: the newest version here, or Debian's, installed now."""
    return newest_installed() or install_from_debian()


def newest_installed() -> Path | None:
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda folder: int(re.sub(r"\D", "", folder.parent.name)), default=None)


def install_from_debian() -> Path:
    # Debian's package would start a cluster for the whole machine: the setting comes first.
    debian.install("postgresql-common")
    debian.as_root(["sed", "-ri", r"s/^#?\s*create_main_cluster.*/create_main_cluster = false/", str(CREATECLUSTER_CONF)])
    debian.install("postgresql")
    folder = newest_installed()
    if folder is None:
        raise debian.MissingProgram("Debian's package postgresql brought no server: look at /usr/lib/postgresql")
    return folder


class Cluster:
    """One PostgreSQL server: trust authentication, 127.0.0.1 only, fsync on as in production."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="anabranch-postgres-"))
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.port = free_port()
        self.process: subprocess.Popen | None = None
        self.binaries = binaries()
        # PostgreSQL refuses to run as root.
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            account = pwd.getpwnam(self.user)
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        self._run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C",
                  "--no-sync", "--no-instructions", "--pgdata", str(self.data))

    @property
    def url(self) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        command = [str(self.binaries / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        for setting in ("listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"):
            command += ["-c", setting]
        # In a session of its own, so that an interrupt at the terminal leaves its stop to us.
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True, **self._identity())
        wait_until(self._answers, "PostgreSQL answers")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stops the server: SIGINT is a fast shutdown, SIGQUIT a crash that needs recovery."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=60)
            self.process = None

    def remove(self) -> None:
        """Stops the server and deletes all that it wrote."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "Cluster":
        try:
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended at its start:\n{self.log.read_text()}")
        probe = [str(self.binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(probe).returncode == 0

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run([str(self.binaries / program), *arguments], check=True,
                       stdout=subprocess.DEVNULL, **self._identity())

    def _identity(self) -> dict:
        identity = {"cwd": self.folder}
        if self.user:
            identity |= {"user": self.user, "group": self.user, "extra_groups": []}
        return identity


def create_database(server_url: str) -> str:
    """A fresh database on the server at `server_url`; answers its URL."""
    name = f"anabranch_{uuid.uuid4().hex[:12]}"
    query(server_url, f"CREATE DATABASE {name}")
    return urlsplit(server_url)._replace(path=f"/{name}").geturl()


def query(url: str, sql: str) -> str:
    """What a statement answers, as plain text."""
    psql = [str(binaries() / "psql"), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]
    answer = subprocess.run([*psql, "--dbname", url, "--command", sql], check=True, capture_output=True, text=True)
    return answer.stdout.strip()
