"""Two builds of sluice, one after the other in each round: what a change costs."""

import dataclasses
import statistics

from . import servers
from .checks import CONNECTIONS
from .measure import Bench, Target, run_quietly
from .pushes import backlog_load, flush_load

# How much more server CPU a unit may take, as a ratio of the medians' pairs.
ALLOWED = 1.03

# The row of the page that a load belongs to, and the load.
LOADS = {
    "echo": ("echo", ["echo", *CONNECTIONS]),
    "echo, 2025-11-25": ("echo", ["echo", *CONNECTIONS, "--revision", "2025-11-25"]),
    "echo, WebSocket": ("transports", ["echo", *CONNECTIONS, "--transport", "ws"]),
    "echo, HTTP with SSE": ("transports", ["echo", *CONNECTIONS, "--transport", "sse"]),
    "progress SSE": ("sse", flush_load("call")),
    "GET SSE": ("sse", flush_load("get")),
    "WebSocket push": ("ws", flush_load("ws")),
    "progress SSE, backlog": ("sse-backlog", backlog_load("call")),
    "GET SSE, backlog": ("sse-backlog", backlog_load("get")),
    "WebSocket push, backlog": ("ws-backlog", backlog_load("ws")),
    "poll": ("poll", ["poll", *CONNECTIONS, "--max-chunks", "1"]),
    "poll, 16 a reply": ("poll", ["poll", *CONNECTIONS, "--max-chunks", "16"]),
    "one stream to 1,000 readers": ("fanout", [
        "fanout", "--connections", "1000", "--count", "100000000", "--interval-us", "-1"
    ]),
}  # fmt: skip
# Those that also go through the proxy.
PROXIED = ("echo", "echo, 2025-11-25", "progress SSE")


@dataclasses.dataclass
class Pairs:
    """Server CPU, in microseconds a unit, of both builds in each round."""

    new: list[float]
    old: list[float]

    @property
    def ratios(self) -> list[float]:
        return [new / old for new, old in zip(self.new, self.old)]

    def line(self, label: str) -> str:
        ratios = self.ratios
        return (
            f"{label:28} {statistics.median(self.new):8.2f} {statistics.median(self.old):8.2f}"
            f"   {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        )


def run(bench: Bench, old: str, only: list[str] | None) -> int:
    """Compares the program of `bench` with `old` and prints a line a load, of the rows `only`.

    Returns how many loads take more than `ALLOWED` times the CPU.
    """
    builds = {"new": bench.paths, "old": dataclasses.replace(bench.paths, sluice=old)}
    print(f"{'server CPU, us a unit':28} {'new':>8} {'old':>8}   new : old, median and range")
    worse = 0
    for label, (row, load) in LOADS.items():
        if only and row not in only:
            continue
        found: dict[str, list[float]] = {"new": [], "old": []}
        for turn in range(bench.rounds):
            # Who goes first alternates, in case the machine gets faster or slower.
            for name in sorted(builds, reverse=turn % 2 == 1):
                target = Target(
                    f"{label}, {name}", lambda paths=builds[name]: servers.sluice(paths), load
                )
                found[name].append(run_quietly(bench, target)["server_us_per_unit"])
        pairs = Pairs(**found)
        worse += statistics.median(pairs.ratios) > ALLOWED
        print(pairs.line(label), flush=True)
    return worse
