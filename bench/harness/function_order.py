"""Which functions of sluice run under load or at its start, in an order for the linker.

Functions that run for the same request then share cache lines and pages, wherever they are
defined. Those that run once, before the first reply, share the pages that a start reads. Callgrind
counts instructions, so the result does not depend on the machine's load.
"""

import collections
import glob
import os
import re
import subprocess
from collections.abc import Iterator

from . import against, processes, proxies, servers
from .measure import Bench

# A function is hot in a load if it runs at least this share of the load's instructions.
HOT = 2e-5


def _callgrind(
    bench: Bench, server: servers.Server, load: list[str] | None
) -> collections.Counter[str]:
    """The instructions of each function under a load, or without one from the start to the end."""
    output = os.path.join(bench.paths.scratch, "callgrind.out")
    command = [
        "valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={output}.%p",
        "--trace-children=yes",
        # A load is measured without what happens once, when the program starts.
        f"--instr-atstart={'no' if load else 'yes'}", *server.command,
    ]  # fmt: skip
    log = os.path.join(bench.paths.scratch, "callgrind.log")
    ready = server.ready_path
    with processes.running(bench.cores.server, command, server.port, log, ready) as process:
        if load:
            switch = ["callgrind_control", "--instr=on", str(process.pid)]
            subprocess.run(switch, check=True, capture_output=True)
            arguments = [
                "--seconds", str(bench.seconds), "--warmup", "0", "--port", str(server.port)
            ]  # fmt: skip
            report = processes.load(bench.paths, bench.cores, [*load, *arguments])
            if report["errors"]:
                raise processes.BenchError(f"{report['errors']} errors: {report['first_error']}")
    costs: collections.Counter[str] = collections.Counter()
    for file in glob.glob(f"{output}.*"):
        with open(file, encoding="utf-8", errors="replace") as lines:
            for name, cost in _costs(lines, os.path.basename(bench.paths.sluice)):
                if re.fullmatch(r"[\w$.]+", name):  # others stand for code without a symbol
                    costs[name] += cost
        os.remove(file)
    return costs


def _costs(lines: Iterator[str], program: str) -> Iterator[tuple[str, int]]:
    """The functions of `program` in a profile, each with instructions of its own, in pieces.

    The format has each name once and its number from then on (Valgrind manual, "Callgrind Format
    Specification"). The line after "calls=" has the cost of the called function, which has lines of
    its own.
    """
    names: dict[tuple[str, str], str] = {}
    current = {"ob": "", "fn": ""}
    inclusive = False
    for line in lines:
        if found := re.match(r"(c?)(ob|fn)=\((\d+)\)(?: (.*))?", line):
            callee, kind, number, name = found.groups()
            if name is not None:
                names[kind, number] = name
            if not callee:
                current[kind] = names[kind, number]
        elif line.startswith("calls="):
            inclusive = True
        elif re.match(r"[-+*\d]", line):
            fields = line.split()
            if not inclusive and len(fields) > 1 and current["ob"].endswith(program):
                # Recursion is told apart by a suffix.
                yield re.sub(r"'\d+$", "", current["fn"]), int(fields[1])
            inclusive = False


def _under_load(bench: Bench) -> Iterator[collections.Counter[str]]:
    """The instructions of each function, for each load of the server, then of the proxy."""
    for label, (_, load) in against.LOADS.items():
        if "fanout" in load:
            continue  # too many connections for a program under Callgrind
        bench.say(f"  {label}")
        yield _callgrind(bench, servers.sluice(bench.paths), load)
    with proxies.upstream_of(bench) as upstream:
        for label in against.PROXIED:
            bench.say(f"  {label}, through the proxy")
            proxy = servers.sluice_proxy(bench.paths, upstream.port)
            yield _callgrind(bench, proxy, against.LOADS[label][1])


def measure(bench: Bench) -> list[str]:
    """The symbols of all hot functions: those of most loads first, and of them the hottest.

    After them come the functions that run only at the start and at the end.
    """
    loads: collections.Counter[str] = collections.Counter()
    parts: collections.Counter[str] = collections.Counter()
    for costs in _under_load(bench):
        total = costs.total()
        for name, cost in costs.items():
            if cost > HOT * total:
                loads[name] += 1
                parts[name] += cost / total
    hot = sorted(loads, key=lambda name: (-loads[name], -parts[name], name))
    starts: set[str] = set()
    for label, server in {
        "start": servers.sluice(bench.paths),
        "start, with a model for an NPU": servers.sluice_npu(bench.paths, pace_ms=20),
    }.items():
        bench.say(f"  {label}")
        starts |= _callgrind(bench, server, None).keys()
    return hot + sorted(starts - loads.keys())


def write(bench: Bench, path: str) -> None:
    names = measure(bench)
    with open(path, "w", encoding="utf-8") as target:
        target.write(
            "# Functions that run under load, then those of the start, for the linker:"
            " scripts/bench --order-functions\n"
        )
        target.writelines(f"{name}\n" for name in names)
