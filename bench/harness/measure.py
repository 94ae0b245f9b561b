"""Alternating rounds and their medians."""

import dataclasses
import os
import statistics
import sys
from collections.abc import Callable

from . import processes, servers
from .processes import Cores, Paths

# If other processes use more CPU time than this, in cores, a run is repeated once and the quieter
# one is kept.
_NOISE = 0.25


@dataclasses.dataclass
class Bench:
    """The settings for all rows. The `rounds` of a row alternate between its targets."""

    paths: Paths
    cores: Cores
    rounds: int = 3
    seconds: float = 3.0
    quick: bool = False

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


@dataclasses.dataclass(frozen=True)
class Target:
    """One line of a comparison: `start` makes the server, `load` are the generator's arguments."""

    label: str
    start: Callable[[], servers.Server]
    load: list[str]


def run_once(bench: Bench, target: Target) -> dict:
    server = target.start()
    core = bench.cores.server
    log = os.path.join(bench.paths.scratch, "server.log")
    arguments = [
        *target.load,
        "--seconds", str(bench.seconds),
        "--warmup", str(min(server.warmup_s, 1.0) if bench.quick else server.warmup_s),
    ]  # fmt: skip
    if server.port == 0:
        arguments += ["--", *processes.pinned(core, server.command)]
        report = processes.load(bench.paths, bench.cores, arguments)
    else:
        with processes.running(
            core, server.command, server.port, log, server.ready_path
        ) as process:
            arguments += ["--port", str(server.port), "--server-pid", str(process.pid)]
            report = processes.load(bench.paths, bench.cores, arguments)
    if report["errors"]:
        bench.say(f"  {target.label}: {report['errors']} errors, first: {report['first_error']}")
    return report


def run_quietly(bench: Bench, target: Target) -> dict:
    report = run_once(bench, target)
    if report["foreign_cores"] > _NOISE and not bench.quick:
        again = run_once(bench, target)
        report = min(report, again, key=lambda run: run["foreign_cores"])
    return report


def compare(bench: Bench, targets: list[Target]) -> dict[str, dict]:
    """Measures each target once per round. Returns the median of each figure by label."""
    runs: dict[str, list[dict]] = {target.label: [] for target in targets}
    for _ in range(bench.rounds):
        for target in targets:
            report = run_quietly(bench, target)
            bench.say(f"  {target.label}: {summary(report)}")
            runs[target.label].append(report)
    return {label: medians(reports) for label, reports in runs.items()}


def summary(report: dict) -> str:
    parts = [f"{report['units_per_s']:,.0f}/s"]
    if "server_us_per_unit" in report:
        parts.append(f"{report['server_us_per_unit']:.2f} us CPU")
    parts.append(f"{report['foreign_cores']:.2f} cores foreign")
    return ", ".join(parts)


def medians(reports: list[dict]) -> dict:
    """The median of each number, including nested ones. Texts are those of the first report.

    Errors are added up. For the share of the slowest connection, the worst value counts.
    """
    merged: dict = {}
    for key, value in reports[0].items():
        values = [report[key] for report in reports if key in report]
        if key == "errors":
            merged[key] = sum(values)
        elif key == "slowest_share":
            merged[key] = min(values)
        elif isinstance(value, dict):
            merged[key] = medians(values)
        elif isinstance(value, (int, float)):
            merged[key] = statistics.median(values)
        else:
            merged[key] = value
    return merged
