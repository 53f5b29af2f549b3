# tools/check_design.py: checks the tracked files against the rules that the project set itself.
"""Prints one line per broken rule, then the figures, and exits with 1 if any rule is broken.

The rules are the functions of RULES: each takes the tree and yields findings.
Usage: tools/check_design.py [root of a git repository].
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import tomllib

sys.path.insert(0, str(Path(__file__).parent))
from house_rules import HOUSE_RULES, TEMPLATE, project_path
from patch_rules import PATCH_RULES
from row_rules import ROW_RULES
from seam_rules import native_names, python_names
from setting_rules import SETTING_RULES
from source_scan import Finding, Source, Tree, root_name
from text_rules import TEXT_RULES

FILE_LINES = 400
FUNCTION_LINES = 60
NULL_DRIVER_LINES = 60
SMALL_DRIVER_LINES = 150
DIALECT_LINES = 80
C_SHARE = 0.80  # of what is not a test: the Python API is tested in Python
HEADER_COMMENTS = (0.35, 0.50)  # of the public header: it is the vendors' manual
INNER_HEADER_COMMENTS = (0.12, 0.50)  # of a layer's: its contracts, beside inline code
UNCOMMENTED = ("dialects", "ve", "version")  # headers whose text is programs, or names alone
SOURCE_COMMENTS = 0.15
SHARE_FROM_LINES = 30  # the share of a shorter file is decided by its first line alone
LAYERS = [
    "runtime",
    "codegen",
    "kernels",
    "compiler",
    "deploy",
    "torch",
]  # an include never goes to the right
TORCH_INCLUDE = re.compile(r"^(torch|ATen|c10|c10d|pybind11|libkineto|Python)\b")
TESTS = ("tests/", "conformance/tests/", "conftest.py")
ANY_DEVICE = "conformance/"  # knows no device's package, so it names none but in its README
VAGUE = re.compile(r"(^|[_\-])(utils?|helpers?|misc|common|managers?)([_\-]|$)", re.IGNORECASE)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
GRAFT = re.compile(r"torch[_-]graft|\bgraft\b|\bGRAFT_", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(?<![\w.$}/])/(?:root|work|home/\w+|Users/\w+)/")
APPLIER = "conftest.py"  # turns the rows of tests/expectations.toml into marks
PY_SKIPS = {"skip", "skipif", "skipIf", "skipUnless", "SkipTest", "xfail", "importorskip"}


def file_sizes(tree: Tree) -> Iterator[Finding]:
    for source in tree.code:
        if len(source.lines) > FILE_LINES:
            text = f"{len(source.lines)} lines; the cap is {FILE_LINES}: split it by noun"
            yield Finding(source.path, 1, text)


def function_sizes(tree: Tree) -> Iterator[Finding]:
    for source in tree.code:
        for function in source.functions:
            if function.length > FUNCTION_LINES:
                text = f"{function.name} has {function.length} lines; the cap is {FUNCTION_LINES}"
                yield Finding(source.path, function.line, text)


def special_sizes(tree: Tree) -> Iterator[Finding]:
    for source in tree.sources:
        if not source.is_c:
            continue
        if source.path.startswith("drivers/null/"):
            what, limit = "the null driver", NULL_DRIVER_LINES
        elif source.path == "tests/drivers/tiny.c":
            what, limit = "a driver with the required slots", SMALL_DRIVER_LINES
        elif "dialects" in source.name.parent.parts:
            what, limit = "a dialect", DIALECT_LINES
        else:
            continue
        if len(source.lines) > limit:
            yield Finding(source.path, 1, f"{len(source.lines)} lines; {what} has at most {limit}")


def includes(source: Source) -> Iterator[tuple[int, bool, str]]:
    """Line, whether in quotes, and what is included."""
    for match in INCLUDE.finditer(source.text):
        yield source.text.count("\n", 0, match.start()) + 1, match.group(1) == '"', match.group(2)


def include_direction(tree: Tree) -> Iterator[Finding]:
    for source in (s for s in tree.code if s.is_c):
        parts = source.name.parts
        if parts[0] == "src" and parts[1] in LAYERS:
            yield from _layer_includes(source, LAYERS.index(parts[1]))
        elif parts[0] in ("include", "drivers"):
            yield from _abi_includes(tree, source, parts)


def _layer_includes(source: Source, rank: int) -> Iterator[Finding]:
    for line, _, target in includes(source):
        top = target.split("/")[0]
        if top in LAYERS and "/" in target and not TORCH_INCLUDE.match(target):
            above = LAYERS.index(top) > rank
        else:
            above = bool(TORCH_INCLUDE.match(target)) and LAYERS[rank] != "torch"
        if above:
            text = f"src/{LAYERS[rank]} must not include {target}: includes go " + " -> ".join(
                reversed(LAYERS)
            )
            yield Finding(source.path, line, text + " -> driver.h")


def _abi_includes(tree: Tree, source: Source, parts: tuple[str, ...]) -> Iterator[Finding]:
    folder = tree.root.joinpath(*parts[:2]).resolve()
    for line, quoted, target in includes(source):
        places = [(base / target).resolve() for base in (tree.root / source.name.parent, folder)]
        own = any(place.exists() and place.is_relative_to(folder) for place in places)
        if target.startswith("graft/") or (own and quoted):
            continue
        if target.split("/")[0] in LAYERS or quoted or TORCH_INCLUDE.match(target):
            what = (
                "a driver includes graft/driver.h" if parts[0] == "drivers" else "driver.h includes"
            )
            text = f"includes {target}; {what}, the system's headers and its vendor's SDK only"
            yield Finding(source.path, line, text)


def comment_shares(tree: Tree) -> Iterator[Finding]:
    for source in tree.code:
        if len(source.lines) <= SHARE_FROM_LINES:
            continue
        share = source.comment_share
        parts = source.name.parts
        inner = parts[0] == "src" and parts[2] not in UNCOMMENTED
        low, high = INNER_HEADER_COMMENTS if inner else HEADER_COMMENTS
        public = inner or parts[:2] == ("include", "graft")
        if source.is_header and public and not low <= share <= high:
            text = f"{share:.0%} comment lines; a header's contract takes {low:.0%} to {high:.0%}"
            yield Finding(source.path, 1, text)
        elif source.path.startswith(TEMPLATE):
            continue  # a vendor's manual: each file says what to replace for the real chip
        elif not source.is_header and share >= SOURCE_COMMENTS:
            text = f"{share:.0%} comment lines; a source stays under {SOURCE_COMMENTS:.0%}"
            yield Finding(source.path, 1, text)


def first_lines(tree: Tree) -> Iterator[Finding]:
    scripts = (".cmake", ".sh", ".toml", ".yml", ".yaml")
    for source in tree.sources:
        named = source.name.suffix in scripts or source.name.name in ("CMakeLists.txt", "Makefile")
        shebang = source.text.startswith("#!")
        if not (source in tree.code or named or shebang) or not source.text.strip():
            continue
        first = source.lines[1 if shebang and len(source.lines) > 1 else 0]
        if source.is_python and re.match(r'"""\S+( \S+){2}', first):
            continue
        path = project_path(source.path) if source.path.startswith(TEMPLATE) else source.path
        if not re.match(rf"(//|/\*|#|\"\"\") ?{re.escape(path)}: \S", first):
            text = f"the first line must be a comment '{path}: what this file is'"
            yield Finding(source.path, 1, text)


def vague_names(tree: Tree) -> Iterator[Finding]:
    for source in tree.sources:
        for part in PurePosixPath(source.path).parts:
            if VAGUE.search(part.split(".")[0]):
                yield Finding(
                    source.path, 1, f"'{part}' does not say what is inside: name the noun"
                )


def driver_lists(tree: Tree) -> Iterator[Finding]:
    """A central file that names two drivers is a list kept beside the folders."""
    central = ("src/", "include/", "python/", "cmake/")
    drivers = tree.drivers()
    for source in tree.sources:
        top = "/" not in source.path and source.name.suffix in (".toml", ".txt", ".json", "")
        if not (source.path.startswith(central) or top or source.path.endswith("CMakeLists.txt")):
            continue
        if source.path.startswith("drivers/") and source.name.parts[1] in drivers:
            continue
        text = re.sub(r"//.*|^\s*#.*", "", source.text, flags=re.MULTILINE)
        named = [
            d for d in drivers if re.search(rf"""(["']){d}\1|\bgraft_{d}\b|\bdrivers/{d}\b""", text)
        ]
        if len(named) > 1:
            yield Finding(
                source.path, 1, f"names the drivers {', '.join(named)}: find them, list none"
            )


def language_share(tree: Tree) -> Iterator[Finding]:
    share = c_share([s for s in tree.code if not s.path.startswith(TESTS)])
    if share < C_SHARE:
        yield Finding(
            "(tree)",
            0,
            f"C and C++ are {share:.0%} of the code outside tests/; at least {C_SHARE:.0%}",
        )


def c_share(sources: list[Source]) -> float:
    c = sum(s.code_line_count for s in sources if s.is_c)
    python = sum(s.code_line_count for s in sources if s.is_python)
    return c / (c + python) if c + python else 1.0


def listed_skips(tree: Tree) -> Iterator[Finding]:
    listing = "tests/expectations.toml"
    rows = []
    for source in (s for s in tree.sources if s.path == listing):
        rows = tomllib.loads(source.text).get("expectation", [])
    known = {s.path for s in tree.sources}
    for row in rows:
        name = row.get("test", "")
        if name.split("::")[0] not in known:
            yield Finding(listing, 1, f"'{name}' names no tracked file")
        if len(row.get("reason", "").split()) < 3 or row.get("kind") not in ("skip", "xfail"):
            yield Finding(listing, 1, f"'{name}' needs kind = skip or xfail, and a reason in words")
    names = [row.get("test", "") for row in rows]
    for source in (s for s in tree.code if s.path.startswith(TESTS) and s.path != APPLIER):
        for line, test in _skips(source):
            full = f"{source.path}::{test}"
            if not any(name == source.path or name.split("[")[0] == full for name in names):
                yield Finding(source.path, line, f"skips {test} without a row in {listing}")


def _skips(source: Source) -> Iterator[tuple[int, str]]:
    """Line and test of every skip or expected failure that the file writes itself."""
    if source.is_c:
        for match in re.finditer(r"\bGTEST_SKIP\s*\(|\bDISABLED_\w+", source.bare):
            tests = re.findall(
                r"\bTEST(?:_[FP])?\s*\(\s*(\w+)\s*,\s*(\w+)", source.bare[: match.end()]
            )
            test = ".".join(tests[-1]) if tests else "(file)"
            yield source.bare.count("\n", 0, match.start()) + 1, test
        return
    functions = sorted(source.functions, key=lambda f: f.line)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in PY_SKIPS and _is_pytest(node):
            around = [f for f in functions if f.line - 5 <= node.lineno < f.line + f.length]
            inside = [f for f in around if f.line <= node.lineno] or around[:1]
            yield node.lineno, inside[-1].name if inside else "(file)"


def _is_pytest(node: ast.Attribute) -> bool:
    return root_name(node) in ("pytest", "unittest")


def one_package_s_names(tree: Tree) -> Iterator[Finding]:
    """What runs on any device imports, and names, no package of one device."""
    for source in tree.sources:
        if not source.path.startswith(ANY_DEVICE) or source.path == f"{ANY_DEVICE}README.md":
            continue
        for number, line in enumerate(source.lines, 1):
            if GRAFT.search(line):
                text = f"names Graft: {ANY_DEVICE} works without it, for any device"
                yield Finding(source.path, number, text)


def machine_paths(tree: Tree) -> Iterator[Finding]:
    for source in tree.sources:
        for number, line in enumerate(source.lines, 1):
            if MACHINE_PATH.search(line):
                yield Finding(source.path, number, "names a path of one machine")


RULES = [
    file_sizes, function_sizes, special_sizes, include_direction, comment_shares, first_lines,
    vague_names, driver_lists, language_share, listed_skips, machine_paths,
    one_package_s_names, native_names, python_names, *PATCH_RULES, *HOUSE_RULES, *SETTING_RULES, *ROW_RULES,
    *TEXT_RULES,
]  # fmt: skip


def figures(tree: Tree) -> str:
    files = [len(s.lines) for s in tree.code if s.path.startswith(("src/", "include/", "drivers/"))]
    functions = [f.length for s in tree.code for f in s.functions]
    return (
        f"sources: {len(files)} files, median {statistics.median(files or [0]):.0f} lines, "
        f"longest {max(files, default=0)}; functions: {len(functions)}, "
        f"median {statistics.median(functions or [0]):.0f} lines, "
        f"longest {max(functions, default=0)}; C and C++ are {c_share(tree.code):.0%} of the code"
    )


def main(arguments: list[str]) -> int:
    tree = Tree(Path(arguments[0] if arguments else ".").resolve())
    findings = [finding for rule in RULES for finding in rule(tree)]
    for path, line, text in findings:
        print(f"{path}:{line}: {text}")
    print(f"check_design: {len(findings)} findings; {figures(tree)}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
