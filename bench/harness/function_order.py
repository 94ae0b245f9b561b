"""Which functions of sluice run under load, in an order in which the linker can place them.

Functions that run for the same request then share cache lines and pages, wherever they are
defined. Callgrind counts instructions, so the result does not depend on the machine's load.
"""

import collections
import os
import re
import subprocess
from collections.abc import Iterator

from . import against, processes, servers
from .measure import Bench

# A function is hot in a load if it runs at least this share of the load's instructions.
HOT = 2e-5


def _callgrind(bench: Bench, load: list[str], output: str) -> None:
    server = servers.sluice(bench.paths)
    command = [
        "valgrind", "--tool=callgrind", "--demangle=no", "--instr-atstart=no",
        "--callgrind-out-file=" + output, *server.command,
    ]  # fmt: skip
    log = os.path.join(bench.paths.scratch, "callgrind.log")
    with processes.running(bench.cores.server, command, server.port, log) as process:
        # Without what happens once, when the program starts.
        switch = ["callgrind_control", "--instr=on", str(process.pid)]
        subprocess.run(switch, check=True, capture_output=True)
        arguments = ["--seconds", str(bench.seconds), "--warmup", "0", "--port", str(server.port)]
        report = processes.load(bench.paths, bench.cores, [*load, *arguments])
    if report["errors"]:
        raise processes.BenchError(f"{report['errors']} errors: {report['first_error']}")


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


def measure(bench: Bench) -> list[str]:
    """The symbols of all hot functions: those of most loads first, and of them the hottest."""
    loads: collections.Counter[str] = collections.Counter()
    parts: collections.Counter[str] = collections.Counter()
    for label, load in against.LOADS.items():
        if "fanout" in load:
            continue  # too many connections for a program under Callgrind
        bench.say(f"  {label}")
        profile = os.path.join(bench.paths.scratch, "callgrind.out")
        _callgrind(bench, load, profile)
        costs: collections.Counter[str] = collections.Counter()
        with open(profile, encoding="utf-8", errors="replace") as lines:
            for name, cost in _costs(lines, os.path.basename(bench.paths.sluice)):
                costs[name] += cost
        total = costs.total()
        for name, cost in costs.items():
            if cost > HOT * total and re.fullmatch(r"_?\w+", name):
                loads[name] += 1
                parts[name] += cost / total
        os.remove(profile)
    return sorted(loads, key=lambda name: (-loads[name], -parts[name], name))


def write(bench: Bench, path: str) -> None:
    names = measure(bench)
    with open(path, "w", encoding="utf-8") as target:
        target.write("# Functions that run under load, for the linker: scripts/bench --order-functions\n")
        target.writelines(f"{name}\n" for name in names)
