"""Schemathesis: the Iceberg REST specification against a running server. `run.py SPECIFICATION [ARGUMENTS]`.

Two passes over the endpoints that the server advertises, both with a fixed seed and a bounded number of examples:
one in which paths and bodies lead to things that exist (`hooks.py`), so that they reach the rules behind, and one in
which every part is made up. Scan planning, functions, signing and tokens aren't advertised and so are left out.
"""

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support.server import Server  # noqa: E402
from things import EMPTY_NAMESPACE, NAMESPACE, TABLE, VIEW, Things  # noqa: E402

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

THINGS_THAT_EXIST = f"""
"path.namespace" = "{NAMESPACE}"
"path.table" = "{TABLE}"
"path.view" = "{VIEW}"
[[operations]]
include-name = "DELETE /v1/{{prefix}}/namespaces/{{namespace}}"
parameters = {{ "path.namespace" = "{EMPTY_NAMESPACE}" }}
"""

# In this pass hardly anything exists, so that most requests find nothing is what it is about.
THINGS_MADE_UP = """
[warnings]
enabled = false
"""


def main(path: str, *extra: str) -> int:
    specification = corrected(Path(path))
    with tempfile.TemporaryDirectory(prefix="anabranch-spec-") as folder:
        server = Server(["--data-dir", f"{folder}/data"], Path(folder) / "server.log").start()
        try:
            config = server.call("GET", "/iceberg/v1/config?warehouse=lake")
            prefix = config["overrides"]["prefix"]
            things = Things(f"{server.iceberg}/v1/{prefix}")
            things.restore()
            endpoints = ["GET /v1/config", *config["endpoints"]]
            among_things = {"SCHEMATHESIS_HOOKS": "hooks", "ANABRANCH_SPEC_BASE": things.base}
            settings = partial(SETTINGS.format, prefix=prefix)
            passes = [
                examine(server, specification, settings(examples=30) + THINGS_THAT_EXIST, endpoints, extra, among_things),
                examine(server, specification, settings(examples=15) + THINGS_MADE_UP, endpoints, extra, {}),
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


def examine(server: Server, specification: dict, settings: str, endpoints: list[str], extra: tuple[str, ...],
            environment: dict[str, str]) -> bool:
    """One pass; whether every answer was within the specification."""
    with tempfile.TemporaryDirectory(prefix="anabranch-spec-") as folder:
        (Path(folder) / "schemathesis.toml").write_text(settings)
        (Path(folder) / "specification.json").write_text(json.dumps(specification, default=str))
        chosen = [word for endpoint in endpoints for word in ("--include-name", endpoint)]
        program = str(Path(sys.executable).parent / "schemathesis")
        command = [program, "run", "specification.json", "--url", server.iceberg, "--checks", CHECKS, *chosen]
        environment = os.environ | {"PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"} | environment
        run = subprocess.run([*command, *extra], cwd=folder, env=environment, stdin=subprocess.DEVNULL)
        return run.returncode == 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
