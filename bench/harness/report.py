"""The results as text for the terminal and as tables for docs/performance.md."""

import datetime
import os
import platform
import subprocess
import textwrap

BEGIN = "<!-- measured by scripts/bench: begin -->"
END = "<!-- measured by scripts/bench: end -->"
LINE = 128  # the most characters of a line of text


def machine() -> dict[str, str]:
    """The machine and the software versions that the figures depend on."""

    def first_line(*command: str) -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "missing"
        lines = (done.stdout or done.stderr).splitlines()
        return lines[0].strip() if lines else "unknown"

    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "CPU": f"{model}, {os.cpu_count()} cores",
        "kernel": platform.release(),
        "node": first_line("node", "--version"),
        "nginx": first_line("nginx", "-v").removeprefix("nginx version: "),
        "commit": first_line("git", "rev-parse", "--short", "HEAD"),
    }


def number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"


def check_line(check: dict) -> str:
    relation = ">=" if check["at_least"] else "<="
    verdict = "met" if check["passed"] else "NOT MET"
    value, limit = number(check["value"]), number(check["limit"])
    return f"{check['what']}: {value} (target {relation} {limit}): {verdict}"


def table(figures: dict[str, dict[str, float]]) -> str:
    columns = list(dict.fromkeys(name for cells in figures.values() for name in cells))
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for label, cells in figures.items():
        values = [number(cells[name]) if name in cells else "" for name in columns]
        lines.append(f"| {label} | " + " | ".join(values) + " |")
    return "\n".join(lines)


def markdown(document: dict) -> str:
    parts = [BEGIN, ""]
    for row in document["rows"].values():
        parts += [f"### {row['title']}", "", table(row["figures"]), ""]
        parts += [f"- {check_line(check)}" for check in row["checks"]]
        if row["errors"]:
            parts.append(f"- {row['errors']} errors during the run: these figures are not valid")
        facts = ", ".join(f"{key} {value}" for key, value in row["machine"].items())
        source = f"`{row['command']}`; {facts}."
        parts += ["", textwrap.fill(source, LINE, break_long_words=False, break_on_hyphens=False), ""]
    parts.append(END)
    return "\n".join(parts)


def update(path: str, document: dict) -> None:
    """Replaces the text between the two marks in the file."""
    with open(path, encoding="utf-8") as source:
        text = source.read()
    begin, end = text.index(BEGIN), text.index(END) + len(END)
    with open(path, "w", encoding="utf-8") as target:
        target.write(text[:begin] + markdown(document) + text[end:])
