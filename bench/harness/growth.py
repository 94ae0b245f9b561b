"""The row of growth: the cost of a unit with many streams, sessions and chunks."""

import os
from collections.abc import Callable

from . import processes, servers
from .checks import CONNECTIONS, Check, Result, rate_figures
from .measure import Bench, Target, medians, run_once, summary
from .processes import BenchError
from .pushes import flush_load


def _with_idle_streams(bench: Bench, idle: int, load: list[str]) -> dict:
    """Runs `load` while `idle` other streams are open and quiet."""
    server = servers.sluice(bench.paths)
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, server.command, server.port, log) as process:
        common = ["--port", str(server.port), "--server-pid", str(process.pid)]
        hold = ["idle", "--connections", str(idle), "--via", "get", *common]
        with processes.holding(bench.paths, bench.cores, hold) as held:
            if held["errors"]:
                raise BenchError(f"{idle} idle streams: {held['first_error']}")
            measured = [*load, *common, "--seconds", str(bench.seconds), "--warmup", "1"]
            return processes.load(bench.paths, bench.cores, measured)


def run_growth(bench: Bench) -> Result:
    few, many = (64, 1000) if bench.quick else (64, 10_000)
    shallow, deep = (1000, 10_000) if bench.quick else (1000, 100_000)
    paths = bench.paths

    def backlog(chunks: int) -> Target:
        roomy = ["--max-chunks", str(chunks), "--max-stream-bytes", "256MiB"]
        load = ["poll", "--connections", "4", "--count", "100000000"]
        label = f"{chunks} chunks buffered, polled"
        return Target(label, lambda: servers.sluice(paths, *roomy), load)

    cases: dict[str, Callable[[], dict]] = {}
    for idle in (few, many):
        for name, load in (
            ("pushed", flush_load("call")),
            ("tools/call", ["echo", *CONNECTIONS]),
        ):
            cases[f"{idle} streams open, {name}"] = (
                lambda idle=idle, load=load: _with_idle_streams(bench, idle, load)
            )
    for chunks in (shallow, deep):
        target = backlog(chunks)
        cases[target.label] = lambda target=target: run_once(bench, target)

    runs: dict[str, list[dict]] = {label: [] for label in cases}
    for _ in range(bench.rounds):
        for label, run in cases.items():
            runs[label].append(run())
            bench.say(f"  {label}: {summary(runs[label][-1])}")
    reports = {label: medians(found) for label, found in runs.items()}

    def grown(low: str, high: str) -> float:
        return reports[high]["server_us_per_unit"] / reports[low]["server_us_per_unit"]

    checks = [
        Check(
            f"CPU per unit, {many} / {few} streams, {name}",
            grown(f"{few} streams open, {name}", f"{many} streams open, {name}"),
            1.1,
        )
        for name in ("pushed", "tools/call")
    ]
    checks.append(
        Check(
            f"CPU per chunk, {deep} / {shallow} buffered",
            grown(backlog(shallow).label, backlog(deep).label),
            1.1,
        )
    )
    errors = sum(report["errors"] for report in reports.values())
    return Result(rate_figures(reports), checks, errors)
