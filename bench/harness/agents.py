"""The rows of the agent, beside the same calls without an agent, and beside OpenAI's agents SDK."""

import dataclasses
import json
import os
import statistics
import subprocess

from . import processes, servers
from .checks import SLUICE, Check, Result
from .measure import Bench
from .processes import BenchError

DIRECT = "without an agent"
CALLBACK = "TypeScript agents SDK, callback"
NESTED = "TypeScript agents SDK, nested agent"
_MODES = {SLUICE: "agent", DIRECT: "client", CALLBACK: "callback", NESTED: "nested"}
_PEERS = [CALLBACK, NESTED]
_NODE_WARMUP_S = 5.0  # what Node.js needs to reach full speed


@dataclasses.dataclass(frozen=True)
class Load:
    runs: int
    calls: int  # of each run; of a peer's it is one
    interval_us: int  # between the chunks of a call; 0: as fast as they are taken
    scheme: str = "ws"
    path: str = "ws"


def _command(bench: Bench, label: str, url: str, load: Load) -> list[str]:
    if label not in _PEERS:
        words = [str(load.runs), str(load.calls), str(load.interval_us), str(bench.seconds)]
        return [bench.paths.agent, _MODES[label], url, *words]
    script = os.path.join(bench.paths.peers, "agents.mjs")
    warmup = 1.0 if bench.quick else _NODE_WARMUP_S
    words = [str(load.runs), str(load.interval_us), str(warmup), str(bench.seconds)]
    # It warns of the listeners of many calls.
    return ["node", "--no-warnings", script, _MODES[label], url, *words]


def _run(bench: Bench, label: str, load: Load) -> dict:
    server = servers.sluice(bench.paths)
    log = os.path.join(bench.paths.scratch, "server.log")
    with processes.running(bench.cores.server, server.command, server.port, log):
        url = f"{load.scheme}://127.0.0.1:{server.port}/{load.path}"
        done = subprocess.run(
            processes.pinned(bench.cores.load, _command(bench, label, url, load)),
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        raise BenchError(f"{label}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _compare(bench: Bench, load: Load, others: list[str]) -> dict[str, dict]:
    """The median of each figure of the agent and of the others, which take turns."""
    found: dict[str, list[dict]] = {label: [] for label in [SLUICE, *others]}
    for _ in range(bench.rounds):
        for label, reports in found.items():
            reports.append(_run(bench, label, load))
            bench.say(f"  {label}: {reports[-1]}")
    return {
        label: {key: statistics.median(report[key] for report in reports) for key in reports[0]}
        for label, reports in found.items()
    }


_COLUMNS = {
    "chunks per second": "per_second",
    "age p50, us": "p50_us",
    "age p99, us": "p99_us",
    "CPU, us each": "cpu_us_each",
    "cores": "cores",
}


def _figures(found: dict[str, dict], *without: str) -> dict[str, dict[str, float]]:
    return {
        label: {name: report[key] for name, key in _COLUMNS.items() if key not in without}
        for label, report in found.items()
    }


def run_agent_latency(bench: Bench) -> Result:
    found = _compare(bench, Load(runs=100, calls=1, interval_us=500_000), [DIRECT])
    more = found[SLUICE]["p99_us"] - found[DIRECT]["p99_us"]
    return Result(_figures(found), [Check("p99 that the agent adds, us", more, 1000)])


def run_agent_runs(bench: Bench) -> Result:
    load = Load(runs=1000, calls=10, interval_us=500_000)
    found = _compare(bench, load, [DIRECT])
    wanted = 0.98 * 2 * load.runs * load.calls
    rate = Check("chunks a second", found[SLUICE]["per_second"], wanted, at_least=True)
    return Result(_figures(found), [rate])


def _beside_peers(bench: Bench, interval_us: int) -> dict[str, dict]:
    load = Load(runs=100, calls=1, interval_us=interval_us, scheme="http", path="mcp")
    return _compare(bench, load, _PEERS)


def run_agent_peers(bench: Bench) -> Result:
    found = _beside_peers(bench, 20_000)
    rate = Check("chunks a second", found[SLUICE]["per_second"], 0.98 * 50 * 100, at_least=True)
    return Result(_figures(found), [rate])


def run_agent_peers_backlog(bench: Bench) -> Result:
    found = _beside_peers(bench, 0)
    ratio = found[CALLBACK]["cpu_us_each"] / found[SLUICE]["cpu_us_each"]
    less = Check("chunks for the same CPU, x the SDK with a callback", ratio, 20, at_least=True)
    # How old a chunk is depends on how many wait before it.
    return Result(_figures(found, "p50_us", "p99_us"), [less])


_REACTIONS = {
    "update": "an update behind what the model has said",
    "rewrite": "the placeholder rewritten into the result",
    "interruption": "an update that breaks an answer off, from its messages",
    "injection": "the same, injected into the sequence of the model's tokens",
    "whole": "without what was computed before",
}


def run_agent_reactions(bench: Bench) -> Result:
    rounds = "3" if bench.quick else str(20 * bench.rounds)
    command = [bench.paths.reactions, bench.paths.model, rounds]
    # The program has the model in itself, so there is no server to leave a core to.
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise BenchError(done.stderr.strip())
    found = json.loads(done.stdout)
    figures = {
        label: {"new tokens": found[key]["tokens"], "ms to the first word": found[key]["ms"]}
        for key, label in _REACTIONS.items()
    }
    fewer = found["whole"]["tokens"] / found["injection"]["tokens"]
    less = found["whole"]["ms"] / found["injection"]["ms"]
    return Result(figures, [Check("tokens of the whole for one of an injection", fewer, 10, at_least=True),
                            Check("time of the whole for that of an injection", less, 3, at_least=True)])
