"""An `anabranch serve` process under test."""

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from .ports import free_port
from .waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


def binary() -> Path:
    """The binary under test: `ANABRANCH_BINARY`, or the debug build of this tree."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return Path(os.environ.get("ANABRANCH_BINARY", target / "debug" / "anabranch"))


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/ready", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


class Server:
    """One server on a free port. `store` holds the arguments that name its store and warehouse."""

    def __init__(self, store: list[str], log: Path) -> None:
        self.store = store
        self.log = log
        self.port = free_port()
        self.process: subprocess.Popen | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def iceberg(self) -> str:
        return f"{self.url}/iceberg"

    def start(self) -> "Server":
        """Starts the process and waits until it is ready."""
        command = [str(binary()), "serve", "--listen", f"127.0.0.1:{self.port}", *self.store]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_until(self._ready, f"{' '.join(command)} is ready")
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Stops the process by SIGTERM, which must end it with exit status 0."""
        process, self.process = self.process, None
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"still running 30 s after SIGTERM\n{self.log_tail()}") from None
        assert status == 0, f"exit status {status} after SIGTERM\n{self.log_tail()}"

    def kill(self) -> None:
        """Ends the process as a crash of the machine would."""
        process, self.process = self.process, None
        process.kill()
        process.wait()

    def doctor(self) -> None:
        """Runs the standing audit on the store, which must find nothing."""
        audit = subprocess.run([str(binary()), "doctor", *self.store], capture_output=True, text=True, timeout=120)
        assert audit.returncode == 0, f"doctor: exit status {audit.returncode}\n{audit.stdout}{audit.stderr}"

    def call(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> dict | None:
        """Calls the server with JSON; raises `urllib.error.HTTPError` on anything but a success."""
        request = urllib.request.Request(f"{self.url}{path}", method=method, headers=headers or {})
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            content = answer.read()
        return json.loads(content) if content else None

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-40:])

    def _ready(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"exit status {self.process.returncode} at the start\n{self.log_tail()}")
        return is_ready(self.url)
