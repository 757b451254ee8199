"""`softgen serve --tbx PORT --gpu NAME`: server for Intel's OpenCL runtime in its TBX (simulator) mode."""

from __future__ import annotations

import argparse

from softgen.errors import UsageError
from softgen.inspect.cli.engine import add_engine_options, check, runner
from softgen.inspect.cli.gpus import find
from softgen.inspect.cli.output import complain, print_json

EXAMPLE = """examples:
  softgen serve --tbx 4321 --gpu skl                  then, in another shell, an OpenCL program:
      NEOReadDebugKeys=1 SetCommandStreamReceiver=2 ProductFamilyOverride=skl TbxPort=4321 PROGRAM
  softgen serve --tbx 0 --gpu icl --clients 1         a free port, and the end after one client

It listens on the loopback interface only, and gives each connection a GPU and memory of its own. A command that fails, or whose submission
exceeds the time limit (default: two minutes), is logged on standard error and skipped: the protocol cannot report errors.

exit codes: 0 every client's work ran, 1 something failed, 2 usage error, 130 interrupted"""


SECONDS = 120.0  # default time limit of one submission


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser("serve", description="Serve Intel's OpenCL runtime in its TBX (simulator) mode.",
                                   epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--tbx", type=int, metavar="PORT", required=True, help="listen on this port of 127.0.0.1; 0 takes a free one")
    parser.add_argument("--gpu", metavar="NAME", required=True, help="which GPU to simulate (softgen gpus lists them)")
    parser.add_argument("--clients", type=int, metavar="N", help="end after N clients; connections that overlap in time are one client")
    add_engine_options(parser)
    parser.set_defaults(time_limit=SECONDS)
    parser.add_argument("--json", action="store_true", help="at the end, one JSON object: clients and what failed")


def run(args: argparse.Namespace) -> int:
    if not 0 <= args.tbx < 1 << 16:
        raise UsageError(f"a port is a number from 0 to 65535, not {args.tbx}")
    if args.clients is not None and args.clients < 1:
        raise UsageError(f"the number of clients is 1 or more, not {args.clients}")
    gpu = find(args.gpu)
    check(args)  # wrong options are a usage error now, not at the first connection
    from softgen.trace.tbx import Options, TbxServer

    server = TbxServer(gpu, args.tbx, Options(args.deterministic, args.time_limit, groups=lambda: runner(args)), complain)
    if not args.json:
        print(f"{gpu.title} ({gpu.name}) listens on 127.0.0.1:{server.port}", flush=True)
    try:
        server.serve(args.clients)
    finally:
        if args.json:
            print_json({"gpu": gpu.name, "port": server.port, "clients": server.clients,
                        "failures": [failure for statistics in server.done for failure in statistics.failures]})  # fmt: skip
    return 1 if any(statistics.failures for statistics in server.done) else 0
