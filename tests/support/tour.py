"""The tour of a page, run as a newcomer pastes it.

The tour is what stands between the comments `<!-- tour -->` and `<!-- end of tour -->`. Its fenced blocks become
one shell script, so that a folder entered or an environment activated in one block holds in the next:

| block           | what happens                                                            |
|-----------------|-------------------------------------------------------------------------|
| `sh`            | pasted                                                                  |
| `sh server`     | pasted into a second terminal; goes on when the server is ready         |
| `python`        | one `python3` run                                                       |
| `sql`           | one `duckdb` run (the command-line shell)                               |
| `text`, `json`, `toml` | only shown                                                       |

Any other block in the tour is an error: nothing is passed over in silence.

One thing is another than what a newcomer does, and is said when it runs: the debug build stands in for the release
build, which would take longer than all other checks together.
"""

import re
import shlex
from dataclasses import dataclass

BEGIN, END = "<!-- tour -->", "<!-- end of tour -->"
ONLY_SHOWN = {"text", "json", "toml"}
RELEASE_RUN, DEBUG_RUN = "cargo run --release", "cargo run"
OPENING_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})\s*(?P<info>[^`]*?)\s*$")


@dataclass(frozen=True)
class Block:
    line: int
    info: str
    text: str


class TourError(RuntimeError):
    """The tour can't be run as it is written."""


def script(page: str, markdown: str, readiness_probe: str) -> str:
    """The tour as a bash script. `readiness_probe` is a command that returns when the server is ready."""
    steps = [step(page, block, readiness_probe) for block in blocks(markdown) if block.info not in ONLY_SHOWN]
    if not steps:
        raise TourError("the tour has no block to run")
    return "\n".join(["set -eo pipefail", *steps, ""])


def blocks(markdown: str) -> list[Block]:
    """The fenced blocks of the tour, in order. Fences as in CommonMark: three or more, closed by as many."""
    found: list[Block] = []
    in_tour, fence, info, opened_at, text = False, "", "", 0, []
    for number, line in enumerate(markdown.splitlines(), start=1):
        if fence:
            if re.fullmatch(rf" {{0,3}}{fence[0]}{{{len(fence)},}}\s*", line):
                if in_tour:
                    found.append(Block(opened_at, info, "\n".join(text)))
                fence = ""
            else:
                text.append(line)
        elif line.strip() == BEGIN:
            in_tour = True
        elif line.strip() == END:
            in_tour = False
        elif opening := OPENING_FENCE.match(line):
            fence, info, opened_at, text = opening["fence"], opening["info"], number, []
    if fence:
        raise TourError(f"line {opened_at}: a block is opened and never closed")
    if in_tour:
        raise TourError(f"the tour has no end: {END} is missing")
    return found


def step(page: str, block: Block, readiness_probe: str) -> str:
    replaced = f"; for `{RELEASE_RUN}` the debug build is run" if RELEASE_RUN in block.text else ""
    title = f"printf '\\n── %s:%d (%s%s)\\n' {page} {block.line} {shlex.quote(block.info)} {shlex.quote(replaced)}"
    text = block.text.replace(RELEASE_RUN, DEBUG_RUN)
    match block.info:
        case "sh":
            body = text
        case "sh server":
            body = f"{{\n{text}\n}} </dev/null &\n{readiness_probe} $!"
        case "python":
            body = f"python3 - <<'END_OF_BLOCK'\n{text}\nEND_OF_BLOCK"
        case "sql":
            body = f"duckdb -bail <<'END_OF_BLOCK'\n{text}\nEND_OF_BLOCK"
        case other:
            raise TourError(f"line {block.line}: a block marked {other!r} can't be run")
    return f"{title}\n{body}"
