"""python -m hone analyze TRACE..."""
import argparse
import os
import signal
import sys

from . import Analysis, HoneError, __version__


def parse(arguments):
    p = argparse.ArgumentParser(prog="python -m hone", description=__import__("hone").__doc__)
    p.add_argument("--version", action="version", version="hone " + __version__)
    commands = p.add_subparsers(dest="command", required=True, metavar="analyze")
    a = commands.add_parser("analyze", help="what bounds a step that the PyTorch profiler recorded, and the fix",
                            epilog="exit codes: 0 done, 1 a finding as severe as --fail-on, 2 wrong usage or input, 3 the machine cannot")
    a.add_argument("traces", nargs="+", metavar="TRACE", help="a file (.json or .json.gz) or a folder with the ranks of a job; several are the ranks of one job")
    a.add_argument("--step-ms", type=float, default=0, metavar="X", help="milliseconds of a step without the profiler, where known")
    a.add_argument("--peak-tflops", type=float, default=0, metavar="X", help="what the device's products reach at most, where its name does not say")
    a.add_argument("--peak-gbps", type=float, default=0, metavar="X", help="the bandwidth of its memory")
    a.add_argument("--out", metavar="DIR", help="write report.html, report.md and report.json into this folder")
    a.add_argument("--fail-on", choices=["critical", "high", "medium", "low"], metavar="SEVERITY", help="exit 1 on a finding this severe: critical, high, medium or low")
    a.add_argument("--json", action="store_true", help="print the diagnosis as one JSON document")
    return p.parse_args(arguments)


def put(text):
    """UTF-8 whatever the locale."""
    try:
        if sys.stdout is None:
            raise OSError("it is closed")
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except OSError as e:
        if sys.stdout:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())      # Python flushes once more at its end
        raise HoneError(3, "cannot write to the standard output") from e


def analyze(o):
    with Analysis(o.traces, o.step_ms, o.peak_tflops, o.peak_gbps) as a:
        if o.out:
            a.write(o.out)
        put(a.json() if o.json else a.screen(sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")))
        return 1 if o.fail_on and a.count(o.fail_on) else 0


def main(arguments=None):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)           # a reader that leaves ends it, as it ends hone
    o = parse(arguments)
    try:
        return analyze(o)
    except HoneError as e:
        if sys.stderr:
            print("hone:", e, file=sys.stderr)
        return e.status


if __name__ == "__main__":
    sys.exit(main())
