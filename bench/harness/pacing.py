"""The rows of streams at a model's pace: how late chunks are, and how many streams are held."""

import dataclasses
from collections.abc import Callable

from . import servers
from .checks import SLUICE, Check, Result, sluice_errors
from .measure import Bench, Target, compare, medians, run_quietly
from .processes import Paths

_PACE_US = 20_000  # 50 chunks per second


def paced_load(streams: int, via: str) -> list[str]:
    pace = ["--interval-us", str(_PACE_US), "--stagger"]
    return ["paced", "--connections", str(streams), *pace, "--via", via, "--keep-awake"]


def _paced_bare(paths: Paths, *options: str) -> servers.Server:
    pace = ["--interval-us", str(_PACE_US), "--count", "1000000000"]
    return servers.bare(paths, *pace, *options)


def run_latency(bench: Bench) -> Result:
    paths = bench.paths
    longer = dataclasses.replace(bench, seconds=bench.seconds if bench.quick else 10)
    sse, ws = paced_load(200, "call"), paced_load(200, "ws")
    reports = compare(
        longer,
        [
            Target("sluice, SSE", lambda: servers.sluice(paths), sse),
            Target("bare epoll, SSE", lambda: _paced_bare(paths, "--call"), sse),
            Target("TypeScript SDK, SSE", lambda: servers.typescript(paths), sse),
            Target("sluice, WebSocket", lambda: servers.sluice(paths), ws),
            Target("bare epoll, WebSocket", lambda: _paced_bare(paths), ws),
            Target("npm ws, WebSocket", lambda: servers.npm_ws(paths), ws),
        ],
    )
    figures = {}
    for label, report in reports.items():
        added, schedule = report["added_us"], report["schedule_us"]
        figures[label] = {
            "per second": report["units_per_s"],
            "added p50, us": added["p50"],
            "added p99, us": added["p99"],
            "added p99.9, us": added["p999"],
            "behind schedule p99, us": schedule["p99"],
            "gap p99, us": report["gap_us"]["p99"],
            "foreign cores": report["foreign_cores"],
        }

    def added(server: str, via: str, key: str) -> float:
        return reports[f"{server}, {via}"]["added_us"][key]

    checks = [
        Check(
            f"{via} added {name}, x bare",
            added("sluice", via, key) / added("bare epoll", via, key),
            1.5,
        )
        for via in ("SSE", "WebSocket")
        for key, name in (("p50", "p50"), ("p99", "p99"), ("p999", "p99.9"))
    ]
    return Result(figures, checks, sluice_errors(reports))


# A number of streams is held if this share of the pace is kept, with p99 below the limit.
_HELD_SHARE = 0.97
_HELD_P99_US = 8000


def _held(bench: Bench, target: Callable[[int], Target], ladder: list[int]) -> tuple[int, dict]:
    """The last number of streams before the first one that is not held, and its report."""
    best, best_report = 0, {}
    for streams in ladder:
        report = medians([run_quietly(bench, target(streams)) for _ in range(bench.rounds)])
        share = report["units_per_s"] / (streams * 1e6 / _PACE_US)
        p99 = report["added_us"]["p99"]
        label = target(streams).label
        bench.say(f"  {label}, {streams} streams: {share:.1%} of the pace, p99 {p99} us")
        if share < _HELD_SHARE or p99 > _HELD_P99_US:
            break
        best, best_report = streams, report
    return best, best_report


def run_held(bench: Bench) -> Result:
    paths = bench.paths
    ladder = [2500] if bench.quick else [1500, 2000, 2500, 3000, 3500, 4000, 4500]

    def load(streams: int) -> list[str]:
        return paced_load(streams, "call")

    def sluice_at(streams: int) -> Target:
        return Target(SLUICE, lambda: servers.sluice(paths), load(streams))

    def bare_at(streams: int) -> Target:
        return Target("bare epoll", lambda: _paced_bare(paths, "--call"), load(streams))

    def typescript_at(streams: int) -> Target:
        return Target("TypeScript SDK", lambda: servers.typescript(paths), load(streams))

    figures = {}
    errors = 0
    held = {}
    for label, target, steps in (
        (SLUICE, sluice_at, ladder),
        ("bare epoll", bare_at, ladder),
        ("TypeScript SDK", typescript_at, [100] if bench.quick else [100, 200, 300, 400, 500]),
    ):
        held[label], report = _held(bench, target, steps)
        figures[label] = {"streams held": held[label]}
        if report:
            errors += sluice_errors({label: report})
            figures[label]["per second"] = report["units_per_s"]
            figures[label]["added p50, us"] = report["added_us"]["p50"]
            figures[label]["added p99, us"] = report["added_us"]["p99"]
            figures[label]["behind schedule p99, us"] = report["schedule_us"]["p99"]
            figures[label]["server cores"] = report["server_cores"]
    # The target is 2,500 on a machine where the floor holds 3,900. The absolute number depends on
    # the machine and varies from day to day, so the ratio is checked too.
    share = held[SLUICE] / max(held["bare epoll"], 1)
    checks = [
        Check("streams held", held[SLUICE], 2500, at_least=True),
        Check("streams held, x bare", share, 2500 / 3900, at_least=True),
    ]
    return Result(figures, checks, errors)
