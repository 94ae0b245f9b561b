"""The result of a row, and code that rows share."""

import dataclasses
import json
import subprocess
from collections.abc import Callable

from . import processes
from .measure import Bench, Target, compare
from .processes import BenchError

SLUICE = "sluice"
CONNECTIONS = ["--connections", "64"]


@dataclasses.dataclass
class Check:
    """One target: `value` must not be above (or, with `at_least`, below) `limit`."""

    what: str
    value: float
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def passed(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclasses.dataclass
class Result:
    """`figures` maps the name of each line of a table to its cells by column."""

    figures: dict[str, dict[str, float]]
    checks: list[Check]
    errors: int = 0


def rate_figures(reports: dict[str, dict]) -> dict[str, dict[str, float]]:
    figures = {}
    for label, report in reports.items():
        cells = {
            "per second": report["units_per_s"],
            "server CPU, us each": report["server_us_per_unit"],
            "of it user, us": report["server_user_us_per_unit"],
        }
        latency = report.get("round_trip_us") or report.get("added_us")
        if latency:
            cells["p50, us"] = latency["p50"]
            cells["p99, us"] = latency["p99"]
        cells["load cores"] = report["load_cores"]
        cells["foreign cores"] = report["foreign_cores"]
        figures[label] = cells
    return figures


def sluice_errors(reports: dict[str, dict]) -> int:
    """Errors of sluice and its floor make the run invalid; a peer's are only reported."""
    ours = [report for label, report in reports.items() if label.startswith((SLUICE, "bare"))]
    return sum(report["errors"] + int(report.get("stalled", 0)) for report in ours)


def cpu_ratio(reports: dict[str, dict], label: str, other: str) -> float:
    """How many units `label` does in the CPU time that `other` needs for one."""
    return reports[other]["server_us_per_unit"] / reports[label]["server_us_per_unit"]


def at_least_bare(name: str, label: str, floor: str, limit: float) -> Callable[[dict], Check]:
    def check(reports: dict[str, dict]) -> Check:
        ratio = cpu_ratio(reports, label, floor)
        return Check(f"{name} for the same CPU, x {floor}", ratio, limit, at_least=True)

    return check


def rates(bench: Bench, targets: list[Target], checks: Callable[[dict], list[Check]]) -> Result:
    reports = compare(bench, targets)
    return Result(rate_figures(reports), checks(reports), sluice_errors(reports))


def micro(bench: Bench, pattern: str) -> dict[str, dict]:
    """Google Benchmark's results by name."""
    program = bench.paths.micro
    command = [
        program, f"--benchmark_filter={pattern}", "--benchmark_format=json",
        f"--benchmark_min_time={0.05 if bench.quick else 0.5}",
    ]  # fmt: skip
    done = subprocess.run(
        processes.pinned(bench.cores.server, command), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BenchError(f"sluice_micro: {done.stderr.strip()}")
    return {found["name"]: found for found in json.loads(done.stdout)["benchmarks"]}


def run_micro(bench: Bench) -> Result:
    figures = {}
    for name, found in micro(bench, ".").items():
        # The time of an iteration, or of a single item if an iteration has several.
        per_second = found.get("items_per_second")
        each = 1e9 / per_second if per_second else found["cpu_time"]
        figures[f"`{name.partition('/iterations')[0]}`"] = {"ns each": each}
    return Result(figures, [])
