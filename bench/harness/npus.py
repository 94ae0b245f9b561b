"""The rows of a model for an NPU, whose runtime is the stand-in of tests/fake_rkllm."""

import dataclasses
import os
import statistics
import time

from . import processes, servers
from .checks import SLUICE, Check, Result, sluice_errors
from .measure import Bench, Target, compare
from .memory import rpc

_PACE_MS = 20  # between tokens
_BARE = "bare epoll, a producer beside it"
_IN_PROCESS = "sluice, synthetic engine"
_READERS = ("1", "8")


def run_npu_latency(bench: Bench) -> Result:
    paths = bench.paths
    longer = dataclasses.replace(bench, seconds=bench.seconds if bench.quick else 10)
    pace = ["--interval-us", str(1000 * _PACE_MS)]
    starts = {
        SLUICE: lambda: servers.sluice_npu(paths, _PACE_MS),
        _BARE: lambda: servers.bare(paths, "--shared", "--producer", *pace),
        _IN_PROCESS: lambda: servers.sluice(paths),
    }
    load = ["fanout", "--count", "1000000", *pace, "--keep-awake"]
    reports = compare(
        longer,
        [
            Target(f"{label}, readers: {readers}", start, [*load, "--connections", readers])
            for readers in _READERS
            for label, start in starts.items()
        ],
    )
    figures = {
        label: {
            "per second": report["units_per_s"],
            "p50, us": report["added_us"]["p50"],
            "p99, us": report["added_us"]["p99"],
            "p99.9, us": report["added_us"]["p999"],
            "foreign cores": report["foreign_cores"],
        }
        for label, report in reports.items()
    }

    def p99(label: str, readers: str) -> float:
        return reports[f"{label}, readers: {readers}"]["added_us"]["p99"]

    checks = [
        Check(f"p99 above the floor, readers: {readers}, us", p99(SLUICE, readers) - p99(_BARE, readers), 50)
        for readers in _READERS
    ]
    return Result(figures, checks, sluice_errors(reports))


def _idle_memory(bench: Bench, server: servers.Server) -> dict[str, float]:
    """Of a server that has given an answer."""
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(
        bench.cores.server, server.command, server.port, log, server.ready_path
    ) as process:
        rpc(server.port, "run", {"prompt": "x", "count": 16, "max_tokens": 16})
        time.sleep(1)
        return {
            "resident, MB": processes.resident_bytes(process.pid) / 1e6,
            "its share, MB": processes.proportional_bytes(process.pid) / 1e6,
        }


def run_npu_memory(bench: Bench) -> Result:
    starts = {
        SLUICE: lambda: servers.sluice_npu(bench.paths, pace_ms=0),
        _IN_PROCESS: lambda: servers.sluice(bench.paths),
    }
    found: dict[str, list[dict[str, float]]] = {label: [] for label in starts}
    for _ in range(bench.rounds):
        for label, start in starts.items():
            found[label].append(_idle_memory(bench, start()))
            bench.say(f"  {label}: {found[label][-1]}")
    figures = {
        label: {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        for label, runs in found.items()
    }
    checks = [
        Check(f"{name} more than without a worker", figures[SLUICE][name] - figures[_IN_PROCESS][name], 2)
        for name in figures[SLUICE]
    ]
    return Result(figures, checks)
