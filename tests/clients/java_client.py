"""Running a single-file Java program against Iceberg's own Java client."""

import os
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "java"


def run_java(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `java/PROGRAM.java`; `./test` names the folder of jars."""
    jars = os.environ.get("ANABRANCH_TEST_JARS")
    if not jars:
        pytest.skip("ANABRANCH_TEST_JARS names no folder of jars: ./test clients does")
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", str(PROGRAMS / f"{program}.java"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)
