"""The rows of the agent, beside the same calls without an agent."""

import json
import os
import statistics
import subprocess

from . import processes, servers
from .checks import SLUICE, Check, Result
from .measure import Bench
from .processes import BenchError

DIRECT = "without an agent"
_MODES = {SLUICE: "agent", DIRECT: "client"}


def _run(bench: Bench, label: str, runs: int, calls: int) -> dict:
    server = servers.sluice(bench.paths)
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, server.command, server.port, log):
        url = f"ws://127.0.0.1:{server.port}/ws"
        words = [bench.paths.agent, _MODES[label], url, str(runs), str(calls), str(bench.seconds)]
        done = subprocess.run(
            processes.pinned(bench.cores.load, words),
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        raise BenchError(f"{label}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _compare(bench: Bench, runs: int, calls: int) -> dict[str, dict]:
    """The median of each figure of both, which take turns."""
    found: dict[str, list[dict]] = {label: [] for label in _MODES}
    for _ in range(bench.rounds):
        for label, reports in found.items():
            reports.append(_run(bench, label, runs, calls))
            bench.say(f"  {label}: {reports[-1]}")
    return {
        label: {key: statistics.median(report[key] for report in reports) for key in reports[0]}
        for label, reports in found.items()
    }


def _figures(found: dict[str, dict]) -> dict[str, dict[str, float]]:
    return {
        label: {
            "chunks per second": report["per_second"],
            "age p50, us": report["p50_us"],
            "age p99, us": report["p99_us"],
            "CPU, us each": report["cpu_us_each"],
            "cores": report["cores"],
        }
        for label, report in found.items()
    }


def run_agent_latency(bench: Bench) -> Result:
    found = _compare(bench, 100, 1)
    more = found[SLUICE]["p99_us"] - found[DIRECT]["p99_us"]
    return Result(_figures(found), [Check("p99 that the agent adds, us", more, 1000)])


def run_agent_runs(bench: Bench) -> Result:
    runs, calls = 1000, 10
    found = _compare(bench, runs, calls)
    wanted = 0.98 * 2 * runs * calls
    rate = Check("chunks a second", found[SLUICE]["per_second"], wanted, at_least=True)
    return Result(_figures(found), [rate])
