# tools/house_rules.py: the rules of folders, for check_design: sizes, order, names, READMEs and tests' places.
"""The order of the folders inside a layer stands in docs/develop/layout.md, in a table that is
read here: "driver < {memory, stream}" lets memory include driver, and not stream."""

from __future__ import annotations

import ast
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePosixPath

import tomllib

from source_scan import Finding, Tree

LAYOUT = "docs/develop/layout.md"
SMALLEST, LARGEST = 3, 30  # files of a folder
PROGRAM_LINES = 60  # of a program in a string
# One family of operators a file.
LARGE = {"src/torch/ops"}
SMALL = {"src/torch/version/minor"}  # one minor version of torch a file
RUN = "tests/libraries/"  # scripts that are run and never imported, named after libraries
TESTED = ("runtime", "codegen", "kernels", "compiler")  # layers whose tests mirror their folders
HOUSED = ("src/", "drivers/", "python/", "conformance/", "tests/", "docs/")
# The files of a vendor's project, whose folders are those of the project.
TEMPLATE = "python/torch_graft/cli/project/"
_ORDER = re.compile(r"^\| `(\w+)` \| (\w+(?: < [\w{}, ]+)+) \|$", re.MULTILINE)
_ARROW = re.compile(r"^\| `(\w+)/(\w+)` \| `(\w+)` \| ([^|]+) \|$", re.MULTILINE)
_INCLUDE = re.compile(r'^#include "(\w+)/(\w+)/[^"]+"', re.MULTILINE)
_ALIAS = re.compile(r"^using (\w+) =", re.MULTILINE)
_TYPE = re.compile(
    r"^(?:class|struct|enum class)\s+(?:GRAFT_EXPORT\s+)?(\w+)[^;{]*\{", re.MULTILINE
)
_MEMBER = re.compile(r"^(?![ #/}])(?:[^=;(){}]*[\s*&])?([A-Z]\w*)::~?[A-Za-z_]\w*\(", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
_FILE = re.compile(r"(?<![\w/.<*\"-])((?:[a-z0-9_]+/)*[a-z0-9_]+\.(?:h|cpp|cmake))\b")
# Files of an example, of a vendor's project, of torch, of the next version.
ELSEWHERE = re.compile(
    r"^(swish\.cpp|file\.cpp|(?:[ab]/)?compiled/driver/.*|torch/csrc/.*|minor/2_16\.h)$"
)

# What a user or a vendor reads, and phrases that are never right there: each hides who does what.
WORDED = re.compile(r"^(README\.md|docs/(use|drivers)/.*\.md|include/graft/.*\.h)$")
PHRASES = {
    re.compile(text.replace(" ", r"\s+")): remedy
    for text, remedy in {
        r"\b(is|are|was|were|be|been) told\b|\btold of\b|\bunless told\b": "say who reports what",
        r"\blies\b": "say where it is",
        r"\bof (its|their|one's) own\b": "name whose, or leave it out",
        r", too(?=[.;:,)|]|\s*\n)": "say 'also', or leave it out",
        r"\b([Nn]obody|[Ss]omebody|[Ww]hoever)\b": "name the subject",
        "it stays when that ends": "say that the mapping outlives the exporter",
        "can be told apart": "state the limit and the remedy",
        "at most most": "say 'no more than `limit`'",
        "operators of others": "say 'third-party operators'",
        "in another way, which is said": "say 'with the stated difference'",
        "what is none of these": "say 'invalid arguments'",
        "Who does not answer": "say 'ranks that do not answer'",
    }.items()
}


def project_path(path: str) -> str:
    """The path of a template's file in the project that python -m torch_graft new-driver writes."""
    parts = path.removeprefix(TEMPLATE).split("/")[1:]
    return "/".join(re.sub(r"^dot(?=\.)", "", part) for part in parts).replace(".template.", ".")


def folders(tree: Tree) -> dict[str, list[str]]:
    """Folder -> names of its tracked files, of the folders that the rules hold for."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in tree.paths:
        if path.startswith(HOUSED) and not path.startswith(TEMPLATE):
            folder, _, name = path.rpartition("/")
            found[folder].append(name)
    return found


def folder_sizes(tree: Tree) -> Iterator[Finding]:
    found = folders(tree)
    inner = {str(parent) for folder in found for parent in PurePosixPath(folder).parents}
    for folder, names in sorted(found.items()):
        if len(names) > LARGEST and folder not in LARGE:
            text = f"{len(names)} files; at most {LARGEST}: split the folder by noun"
            yield Finding(folder, 1, text)
        if len(names) < SMALLEST and folder not in inner | SMALL:
            text = f"{len(names)} files; at least {SMALLEST}: put them into the folder above"
            yield Finding(folder, 1, text)


def folder_order(tree: Tree) -> Iterator[Finding]:
    """An include goes to a folder on the left of its own, or along an arrow that layout.md states."""
    text = next((s.text for s in tree.sources if s.path == LAYOUT), "")
    ranks = {
        layer: {
            name: rank
            for rank, names in enumerate(row.split(" < "))
            for name in re.findall(r"\w+", names)
        }
        for layer, row in _ORDER.findall(text)
    }
    stated = {(layer, a, b) for layer, a, b, _ in _ARROW.findall(text)}
    unused = set(stated)
    for source in (s for s in tree.code if s.is_c and s.path.startswith("src/")):
        parts = source.name.parts
        if len(parts) < 4:
            continue
        if parts[1] not in ranks:
            yield Finding(source.path, 1, f"{LAYOUT} has no order of the folders of {parts[1]}")
            continue
        layer, own, order = parts[1], parts[2], ranks[parts[1]]
        if own not in order:
            yield Finding(source.path, 1, f"the order of {layer} in {LAYOUT} lacks {own}")
            continue
        for match in _INCLUDE.finditer(source.text):
            top, other = match.groups()
            if top != layer or other == own or order.get(other, -1) < order[own]:
                continue
            unused.discard((layer, own, other))
            if (layer, own, other) not in stated:
                line = source.text.count("\n", 0, match.start()) + 1
                text = f"{own} must not include {other}: the order of {layer} is in {LAYOUT}"
                yield Finding(source.path, line, text)
    for layer, a, b in sorted(unused):
        yield Finding(LAYOUT, 1, f"no file of {layer}/{a} includes {layer}/{b} any more")


def repeated_names(tree: Tree) -> Iterator[Finding]:
    """A file's name does not begin with its folder's; the folder's main file may have that name."""
    for folder, names in sorted(folders(tree).items()):
        last = folder.rpartition("/")[2]
        for name in names:
            test, noun = "test_" * name.startswith("test_"), name.removeprefix("test_")
            # A test of one of them repeats the name, too: graphs/test_graph_states.py.
            starts = [f"{one}_" for one in (last, last.removesuffix("s")) if test or one == last]
            start = next((one for one in starts if noun.startswith(one)), None)
            if start is not None and name != f"{last}_test.cpp":
                text = f"repeats the name of its folder: {test}{noun.removeprefix(start)}"
                yield Finding(f"{folder}/{name}", 1, text)


_APART = re.compile(r"(?<![\w*])\*(?=\w)[^*\n]* \*(?=[\s,.;])")


def readmes(tree: Tree) -> Iterator[Finding]:
    for folder, names in sorted(folders(tree).items()):
        if "README.md" not in names and folder not in SMALL:
            yield Finding(
                folder, 1, "has no README.md: its nouns, its entry point, who includes it"
            )
    for source in (s for s in tree.sources if s.name.name == "README.md"):
        if source.text and not source.text.startswith(("# ", "<!--")):
            yield Finding(source.path, 1, "begins with no heading: '# folder: what it is for'")
        for found in _APART.finditer(
            re.sub(r"```.*?```|`[^`\n]*`", _blank, source.text, flags=re.DOTALL)
        ):
            line = source.text.count("\n", 0, found.start()) + 1
            yield Finding(source.path, line, f"{found[0]} stands out nowhere: no blank before *")


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def mirrored_tests(tree: Tree) -> Iterator[Finding]:
    """A folder of tests of a layer is a folder of src."""
    found = folders(tree)
    for folder in sorted(found):
        if (
            folder.startswith(tuple(f"tests/{layer}" for layer in TESTED))
            and "src" + folder.removeprefix("tests") not in found
        ):
            yield Finding(folder, 1, f"src{folder.removeprefix('tests')} is no folder")


def one_module_one_name(tree: Tree) -> Iterator[Finding]:
    """No two modules that tests import by name, from the folders of pytest's pythonpath, have the same one."""
    text = next((s.text for s in tree.sources if s.path == "pyproject.toml"), "")
    options = tomllib.loads(text).get("tool", {}).get("pytest", {}).get("ini_options", {})
    places: dict[str, str] = {}
    for path in sorted(tree.paths):
        folder, _, name = path.rpartition("/")
        by_pytest = name.startswith("test_") or name == "conftest.py"
        if folder not in options.get("pythonpath", []) or by_pytest or not name.endswith(".py"):
            continue
        if name in places:
            yield Finding(
                path, 1, f"a second module of this name: {places[name]} is imported by it"
            )
        places.setdefault(name, path)


def found_modules(tree: Tree) -> Iterator[Finding]:
    """What tests import of the tests is in a folder of pytest's pythonpath, and no file of tests."""
    text = next((s.text for s in tree.sources if s.path == "pyproject.toml"), "")
    options = tomllib.loads(text).get("tool", {}).get("pytest", {}).get("ini_options", {})
    python = [PurePosixPath(path) for path in tree.paths if path.endswith(".py")]
    found = {path.stem for path in python if str(path.parent) in options.get("pythonpath", [])}
    ours = {
        path.stem for path in python if "tests" in path.parts and not str(path).startswith(RUN)
    } - found
    for source in (s for s in tree.code if s.is_python and "tests" in s.name.parts):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                if name in ours and name != "__init__":
                    text = f"imports {name}, which no folder of pytest's pythonpath has"
                    yield Finding(source.path, node.lineno, text)


def programs_in_strings(tree: Tree) -> Iterator[Finding]:
    """A long program that a test starts is a file, where it is linted and found."""
    for source in (s for s in tree.code if s.is_python and s.path.startswith("tests/")):
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Constant | ast.JoinedStr):  # no number has two lines
                continue
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > PROGRAM_LINES:
                text = (
                    f"a string of {lines} lines; a program of more than {PROGRAM_LINES} is a file"
                )
                yield Finding(source.path, node.lineno, text)


def one_type_one_name(tree: Tree) -> Iterator[Finding]:
    """No two types of one name in the headers of src."""
    places: dict[str, list[str]] = defaultdict(list)
    for source in tree.code:
        if source.path.startswith("src/") and source.is_header:
            for name in {*_TYPE.findall(source.text), *_ALIAS.findall(source.text)}:
                places[name].append(source.path)
    for name, paths in sorted(places.items()):
        for path in paths[1:]:
            yield Finding(path, 1, f"a second type called {name}: {paths[0]} has one")


def one_class_one_file(tree: Tree) -> Iterator[Finding]:
    """The members of a class of src or of one driver are defined in one file."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for source in tree.code:
        root = re.match(r"(src|drivers/\w+)/", source.path)
        if root is None or source.is_header:
            continue
        for name in set(_MEMBER.findall(source.text)):
            places[root[1], name].append(source.path)
    for (_, name), paths in sorted(places.items()):
        for path in paths[1:]:
            yield Finding(path, 1, f"defines members of {name}, as {paths[0]} does")


def named_files(tree: Tree) -> Iterator[Finding]:
    """A file of C that a comment or a page names is there, by its path or by the end of it."""
    ends = {
        path.split("/", start)[-1] for path in tree.paths for start in range(path.count("/") + 1)
    }
    for source in tree.sources:
        page = source.name.suffix == ".md" and not source.path.startswith(
            "docs/generated/conformance/"
        )
        if not page and not (source.is_c and source.path.startswith(("src/", "drivers/"))):
            continue
        for number, line in enumerate(source.text.split("\n"), 1):
            text = line if page else line.partition("//")[2]
            for name in _FILE.findall(text):
                if name not in ends and not ELSEWHERE.match(name):
                    yield Finding(source.path, number, f"names {name}, which is no tracked file")


def dead_links(tree: Tree) -> Iterator[Finding]:
    """A link of a page that names no host leads to a tracked file or folder."""
    places = set(tree.paths) | {
        str(parent) for path in tree.paths for parent in PurePosixPath(path).parents
    }
    for source in (s for s in tree.sources if s.name.suffix == ".md"):
        for match in _LINK.finditer(source.text):
            place = posixpath.normpath(posixpath.join(source.name.parent, match[1]))
            if "://" not in match[1] and not match[1].startswith("mailto:") and place not in places:
                line = source.text.count("\n", 0, match.start()) + 1
                yield Finding(source.path, line, f"links to {match[1]}, which is not there")


def plain_words(tree: Tree) -> Iterator[Finding]:
    """No phrase of PHRASES in a page or a header that users and vendors read."""
    for source in (s for s in tree.sources if WORDED.match(s.path)):
        for phrase, remedy in PHRASES.items():
            for match in phrase.finditer(source.text):
                line = source.text.count("\n", 0, match.start()) + 1
                text = " ".join(match[0].split())
                yield Finding(source.path, line, f"'{text}': {remedy}")


HOUSE_RULES = [
    folder_sizes, folder_order, repeated_names, readmes, mirrored_tests, one_type_one_name, one_class_one_file,
    named_files,
    dead_links, one_module_one_name, found_modules, programs_in_strings, plain_words,
]  # fmt: skip
