# python/torch_graft/process/launching.py: starts a script on several ranks: python -m torch_graft run.
"""torchrun's options and agent, with Graft's integrations loaded in each rank."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import signal
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from torch_graft.integrations import registry

RUNNER = "torch_graft.integrations.script"


def run(arguments: list[str]) -> int:
    """Returns the exit code of the rank that failed, else 0; ends by the signal that ended a rank."""
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    parser = torchrun.get_args_parser()
    parser.prog = "python -m torch_graft run"
    parser.add_argument(
        "--nproc", dest="nproc_per_node", help="ranks on this machine (one for each device)"
    )
    parser.add_argument(
        "--explain", action="store_true", help="say in full what is set and changed"
    )
    parser.set_defaults(nproc_per_node="auto")
    options = parser.parse_args(arguments)
    try:
        say = _prepare(options, torchrun)
    except ValueError as error:
        parser.error(str(error))
    if say is None:
        return 2
    print(say, file=sys.stderr, flush=True)
    try:
        torchrun.run(options)
    except ChildFailedError as error:
        # The agent ends the others by SIGTERM; who lost a peer ends by an exception, with 1.
        code, rank = min(((one.exitcode, rank) for rank, one in error.failures.items()),
                         key=lambda found: (found[0] == -signal.SIGTERM, found[0] == 1, found[1]))  # fmt: skip
        by = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        print(
            f"torch_graft run: rank {rank} ended with {by}; all ranks are ended",
            file=sys.stderr,
            flush=True,
        )
        return _end(code)
    except SignalException as error:
        return _end(-error.sigval)
    except KeyboardInterrupt:
        return _end(-signal.SIGINT)
    return 0


def _end(code: int) -> int:
    if code >= 0:
        return code
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code  # where the signal is ignored or blocked


def _prepare(options: Any, torchrun: Any) -> str | None:
    """Sets environment and command of the ranks; says what it did, or None after it said why it does not start."""
    set_here = {}

    def offer(name: str, value: str) -> None:
        if name not in os.environ:
            os.environ[name] = set_here[name] = value

    if options.nproc_per_node.isdigit():
        offer(
            "GRAFT_HOST_DEVICES", options.nproc_per_node
        )  # simulated devices, if there are no others
    count = torchrun.determine_local_world_size(options.nproc_per_node)
    options.nproc_per_node = str(count)
    offer("OMP_NUM_THREADS", str(max(1, len(os.sched_getaffinity(0)) // count)))
    if registry.VARIABLE not in os.environ and not options.no_python:
        offer(registry.VARIABLE, ",".join(_wanted(options)))
    names = registry.chosen()
    flaws = [flaw for flaw in map(registry.flaw, names) if flaw]
    if flaws and (count > 1 or options.nnodes not in ("1", "1:1")):
        print(f"torch_graft run: {'; '.join(flaws)}: its ranks might train apart. Install a known version, or set "
              f"{registry.VARIABLE}=none to start them without.", file=sys.stderr)  # fmt: skip
        return None
    if names:
        options.training_script_args[:0] = ["-m"] * options.module + [options.training_script]
        options.training_script, options.module = RUNNER, True
    settings = ", ".join(f"{key}={value}" for key, value in set_here.items() if value)
    text = (f"torch_graft run: {count} rank{'s' * (count > 1)} on '{registry.attached_name()}'; integrations: "
            f"{', '.join(names) or 'none'}; set {settings or 'nothing'}")  # fmt: skip
    if not options.explain:
        return text
    rows = [f"  {name}: {how} {what}, because {why}" for name in names
            for how, what, why in registry.libraries()[name].changes]  # fmt: skip
    command = " ".join([options.training_script, *options.training_script_args])
    return "\n".join([text, *rows, f"  each rank runs: python {'-m ' * options.module}{command}"])


def _wanted(options: Any) -> list[str]:
    """The libraries that the script, files beside it, or packages that these import, need."""
    name = options.training_script
    found = importlib.util.find_spec(name) if options.module else None
    script = Path(found.origin or "" if found else name)
    seen: set[str] = set()
    rest = _imports(script)
    while rest:
        name = re.sub(r"[-_.]+", "-", rest.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        beside = script.parent / name.replace("-", "_")
        for path in (beside.with_suffix(".py"), *beside.glob("**/*.py")):
            rest += _imports(path)
        if any(name == row.distribution for row in registry.libraries().values()):
            continue  # what it needs itself stands in its row
        try:
            needed = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        rest += [re.split(r"[^\w.-]", one)[0] for one in needed if "extra ==" not in one]
    return [
        name
        for name, row in registry.libraries().items()
        if row.distribution in seen and registry.installed(name)
    ]


def _imports(path: Path) -> list[str]:
    """The top-level names that a file imports; none of a file that does not parse."""
    try:
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return []
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [
        node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level
    ]
    return [name.split(".")[0] for name in names if name]
