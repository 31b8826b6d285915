"""Measure, and report what was measured.

python -m bench                     everything, about an hour on two idle cores
python -m bench --quick             everything on smaller jobs, a few minutes
python -m bench speed tightness     only these
python -m bench --report            Markdown from the saved results of the last full run
"""

from __future__ import annotations

import argparse
import importlib
import sys

from bench import machine
from bench.report import failed, report

PARTS = {  # and the modules that measure them
    "tightness": "tightness",
    "auto": "auto",
    "speed": "speed",
    "process": "process",
    "report_page": "report_page",
    "peers": "peers",
    "metrics": "metrics",
    "kernels": "kernels",
    "functions": "functions",
    "reproduce": "reproduce_certificates",
    "perturbations": "perturbations",
    "rankings": "reproduce_rankings",
    "semantic": "semantic",
    "frames": "frames",
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure calcore.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="smaller jobs; results under .benchmarks/")
    parser.add_argument(
        "--report", action="store_true", help="print saved results as Markdown, measure nothing"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
    parts = options.parts or list(PARTS)
    if not options.report:
        for part in parts:
            print(f"\n== {part} (load {machine.load()})", flush=True)
            importlib.import_module(f"bench.{PARTS[part]}").measure(options.quick)
        print()
    print(report(parts, options.quick))
    return 1 if not options.report and failed(parts, options.quick) else 0


if __name__ == "__main__":
    sys.exit(main())
