"""Schemathesis: the Iceberg REST specification against a running server. `run.py SPECIFICATION [ARGUMENTS]`.

Two passes over the endpoints that the server advertises, both with a fixed seed and a bounded number of examples:
one in which paths lead to things that exist, so that bodies reach the rules behind them, and one in which every part
is made up. Scan planning, functions, signing and tokens aren't advertised and so are left out.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.server import Server  # noqa: E402

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"

# Methods that the specification doesn't know have no answer in it either: no coverage of unexpected methods.
SETTINGS = """
seed = 1
continue-on-failure = true
[generation]
deterministic = true
max-examples = {examples}
no-shrink = true
[phases.coverage]
unexpected-methods = []
[phases.stateful]
enabled = false
[parameters]
"path.prefix" = "{prefix}"
"""

THINGS_THAT_EXIST = """
"path.namespace" = "accounting"
"path.table" = "sales"
"path.view" = "big_sales"
"""

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
VIEW_VERSION = {
    "version-id": 1, "timestamp-ms": 1_700_000_000_000, "schema-id": 0, "summary": {},
    "default-namespace": ["accounting"],
    "representations": [{"type": "sql", "sql": "SELECT id FROM sales", "dialect": "spark"}],
}


def main(path: str, *extra: str) -> int:
    specification = corrected(Path(path))
    with tempfile.TemporaryDirectory(prefix="anabranch-spec-") as folder:
        server = Server(["--data-dir", f"{folder}/data"], Path(folder) / "server.log").start()
        try:
            config = server.call("GET", "/iceberg/v1/config?warehouse=lake")
            prefix = config["overrides"]["prefix"]
            create_things(server, prefix)
            endpoints = ["GET /v1/config", *config["endpoints"]]
            harmless = [endpoint for endpoint in endpoints if not removes(endpoint)]
            passes = [
                examine(server, specification, SETTINGS.format(examples=30, prefix=prefix) + THINGS_THAT_EXIST, harmless, extra),
                examine(server, specification, SETTINGS.format(examples=15, prefix=prefix), endpoints, extra),
            ]
        finally:
            server.stop()
        server.doctor()
    return int(not all(passes))


def corrected(specification: Path) -> dict:
    """The specification without two things that no server can follow.

    Its view operations show errors without the `error` object around them that every client reads. And a key that
    comes again with another body, as generated requests do, has no answer in it; keys have tests of their own.
    """
    document = yaml.safe_load(specification.read_text())
    wrapped = {"$ref": "#/components/schemas/IcebergErrorResponse"}
    key = {"$ref": "#/components/parameters/idempotency-key"}
    for item in document["paths"].values():
        for operation in (operation for method, operation in item.items() if method != "parameters"):
            operation["parameters"] = [parameter for parameter in operation.get("parameters", []) if parameter != key]
            for response in operation["responses"].values():
                for content in response.get("content", {}).values():
                    if content.get("schema") == {"$ref": "#/components/schemas/ErrorModel"}:
                        content["schema"] = wrapped
    return document


def create_things(server: Server, prefix: str) -> None:
    """Makes what `THINGS_THAT_EXIST` names, and the nested namespace of the specification's own examples."""
    namespaces = f"/iceberg/v1/{prefix}/namespaces"
    server.call("POST", namespaces, {"namespace": ["accounting"]})
    server.call("POST", namespaces, {"namespace": ["accounting", "tax"]})
    server.call("POST", f"{namespaces}/accounting/tables", {"name": "sales", "schema": SCHEMA})
    server.call("POST", f"{namespaces}/accounting/views", {
        "name": "big_sales", "schema": SCHEMA, "view-version": VIEW_VERSION, "properties": {},
    })


def removes(endpoint: str) -> bool:
    return endpoint.startswith("DELETE ") or endpoint.endswith(("/rename", "/unregister"))


def examine(server: Server, specification: dict, settings: str, endpoints: list[str], extra: tuple[str, ...]) -> bool:
    """One pass; whether every answer was within the specification."""
    with tempfile.TemporaryDirectory(prefix="anabranch-spec-") as folder:
        (Path(folder) / "schemathesis.toml").write_text(settings)
        (Path(folder) / "specification.json").write_text(json.dumps(specification, default=str))
        chosen = [word for endpoint in endpoints for word in ("--include-name", endpoint)]
        program = str(Path(sys.executable).parent / "schemathesis")
        command = [program, "run", "specification.json", "--url", server.iceberg, "--checks", CHECKS, *chosen]
        return subprocess.run([*command, *extra], cwd=folder, stdin=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
