"""Print the lines of the core and of its parts; exit 1 when the core is over the budget in pyproject.toml.

The core is the host without vendors' folders, migration, the attack suite and the pages:
`[tool.evaluator-host.core]` names what is left out and how many lines the rest may have.
"""

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "evaluator_host"


def main() -> int:
    """Count, print and compare."""
    core = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["evaluator-host"]["core"]
    lines: Counter[str] = Counter()
    modules = 0
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts
        name = "/".join(parts)
        if any(name.startswith(f"{left_out}/") for left_out in core["without"]):
            continue
        modules += 1
        lines[parts[0] if len(parts) > 1 else "."] += len(path.read_text().splitlines())
    total = sum(lines.values())
    print(f"core: {total} lines in {modules} modules, budget {core['lines']}")
    print("  " + ", ".join(f"{name} {count}" for name, count in lines.most_common()))
    if total > core["lines"]:
        print(f"the core is {total - core['lines']} lines over its budget: make something simpler", file=sys.stderr)
    return int(total > core["lines"])


if __name__ == "__main__":
    sys.exit(main())
