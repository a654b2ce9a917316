"""Relative links in Markdown: the file that a link names exists, and so does the heading."""

import re
from pathlib import Path
from urllib.parse import unquote

FENCED_BLOCK = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1[`~]*\s*$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^\s<>()]+(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)


def broken(files: list[Path]) -> list[str]:
    """One line for each relative link that leads nowhere."""
    return [f"{file}: {target}" for file in files for target in targets(file) if not resolves(file, target)]


def targets(file: Path) -> list[str]:
    prose = CODE_SPAN.sub("", FENCED_BLOCK.sub("", file.read_text()))
    return [inline or definition for inline, definition in LINK.findall(prose)]


def resolves(file: Path, target: str) -> bool:
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return True
    path, _, fragment = unquote(target).partition("#")
    linked = file.parent / path if path else file
    if not linked.exists():
        return False
    return not fragment or linked.suffix != ".md" or fragment in anchors(linked)


def anchors(file: Path) -> set[str]:
    """The anchors that a renderer makes of the headings; a repeated one gets a number."""
    seen: dict[str, int] = {}
    found = set()
    for heading in HEADING.findall(FENCED_BLOCK.sub("", file.read_text())):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        repeats = seen.get(anchor, 0)
        seen[anchor] = repeats + 1
        found.add(f"{anchor}-{repeats}" if repeats else anchor)
    return found
