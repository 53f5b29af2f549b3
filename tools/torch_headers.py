# tools/torch_headers.py: what the headers of a torch declare in at::native, for tools/torch-audit.
"""No compiler: conditions of the preprocessor are decided as if no macro were defined, which is so
for the builds of torch that we take, and only declarations at namespace level are read. Names of
parameters count: two of one type that change places are found by them alone."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from source_scan import TOKEN, closing

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)
_NAMESPACE = re.compile(r"(?:inline\s+)?namespace\s*([\w:]*)\s*$|extern\s*\"\"\s*$")
_TYPE = re.compile(
    r"(?:typedef\s+)?(?P<kind>class|struct|union|enum(?:\s+class|\s+struct)?)\s+"
    r"(?:[A-Z][A-Z0-9_]+\s+|\[\[[^\]]*\]\]\s*)*(?P<name>\w+)\b(?:\s+final\b)?(?!\s*[(\w])"
)
_ALIAS = re.compile(r"using\s+(\w+)\s*=\s*(.+)$", re.DOTALL)
_DISPATCH = re.compile(r"\bDECLARE_DISPATCH\s*\(")
_FUNCTION = re.compile(r"\b(operator\s*\W+|~?\w+)\s*\(")
_VARIABLE = re.compile(r"\b(\w+)\s*(?:\[[^\]]*\])*\s*(?:=.*)?$", re.DOTALL)
_FOLLOWED = re.compile(r"ATen/(native/.*|ops/\w*_native\.h|(?!ATen\b|\w*Functions)\w+\.h)")
# What says nothing of how a name is used.
_NOISE = re.compile(
    r"\[\[[^\]]*\]\]|\b(?:TORCH_[A-Z]*API|C10_API|C10_[A-Z_]*(?:INLINE|UNUSED)|static|inline|extern|"
    r"constexpr)\b|\b(?:at|c10)::(?=\w)|(?<![\w>])::(?=\w)"
)
_MARK = re.compile(r"[(){};]")
_NO_NAMES = {"decltype", "alignas", "noexcept", "__attribute__", "sizeof", "static_assert"}


class Declaration(NamedTuple):
    """name: with its namespaces. form: how it is used, comparable between versions of torch."""

    name: str
    form: str
    header: str


class Headers:
    """The headers of one torch."""

    def __init__(self, include: Path) -> None:
        self.folder = include
        self._read: dict[str, list[Declaration]] = {}

    def has(self, header: str) -> bool:
        return (self.folder / header).is_file()

    def reached(self, given: list[str]) -> list[str]:
        """These and what they include of ATen's own folder, of ATen/native and of ATen/ops, those
        that exist; ATen.h and what else includes all operators is left out."""
        found: list[str] = []
        waiting = list(given)
        while waiting:
            header = waiting.pop(0)
            if header in found or not self.has(header):
                continue
            found.append(header)
            more = INCLUDE.findall(conditional(self._text(header)))
            waiting += [one for one in more if _FOLLOWED.match(one)]
        return found

    def declared(self, header: str) -> list[Declaration]:
        if header not in self._read:
            self._read[header] = list(declarations(self._text(header), header))
        return self._read[header]

    def _text(self, header: str) -> str:
        return (self.folder / header).read_text(encoding="utf-8", errors="replace")


def conditional(text: str) -> str:
    """The lines that are compiled where no macro is defined; directives stay, comments go."""
    text = TOKEN.sub(lambda m: m.group() if m.lastgroup not in ("line", "block") else " ", text)
    kept: list[str] = []
    taken: list[bool] = []  # by open condition: whether its present branch is compiled
    done: list[bool] = []  # and whether one of its branches was
    for line in text.replace("\\\n", " ").splitlines():
        found = re.match(r"\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b(.*)", line)
        if found is None:
            if all(taken):
                kept.append(line)
            continue
        word, condition = found[1], found[2].strip()
        if word == "endif":
            taken, done = taken[:-1], done[:-1]
        elif word in ("elif", "else"):
            now = not done[-1] and (word == "else" or _holds(condition))
            taken[-1], done[-1] = now, done[-1] or now
        else:
            now = word == "ifndef" or (word == "if" and _holds(condition))
            taken.append(now)
            done.append(now)
    return "\n".join(kept)


def _holds(condition: str) -> bool:
    text = re.sub(r"defined\s*\(?\s*\w+\s*\)?", "0", condition)
    text = re.sub(r"\b[A-Za-z_]\w*(\s*\([^()]*\))?", "0", text)
    text = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or "))
    try:
        return bool(eval(text.strip(), {"__builtins__": {}}))
    except (SyntaxError, TypeError, ZeroDivisionError):
        return True


def declarations(text: str, header: str) -> Iterator[Declaration]:
    bare = conditional(text)
    bare = TOKEN.sub(lambda m: '""' if m.lastgroup in ("string", "raw") else m.group(), bare)
    bare = re.sub(r"^[ \t]*#.*$", "", bare, flags=re.MULTILINE)
    bare, stubs = _taken_out(bare)
    aliases: dict[str, str] = {}
    for space, head, body in _statements(bare):
        for name, form in _declared(head, body):
            if form.startswith("using "):
                aliases[name] = form.removeprefix("using ")
            yield Declaration("::".join([*space, name]), form, header)
    for name, kind in stubs:
        form = aliases.get(kind) or normal(kind)
        yield Declaration(f"at::native::{name}", f"DispatchStub of {form}", header)


def _taken_out(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text without the stubs that it declares; of each stub name and type."""
    stubs = []
    while found := _DISPATCH.search(text):
        end = closing(text, found.end() - 1)
        kind, _, name = text[found.end() : end].rpartition(",")
        stubs.append((name.strip(), kind.strip()))
        text = text[: found.start()] + text[end + 1 :].lstrip(";")
    return text, [(name, kind) for name, kind in stubs if name.isidentifier()]


def _statements(text: str) -> Iterator[tuple[list[str], str, str]]:
    """Namespaces, head and, where it has one, body of each statement outside of functions."""
    spaces: list[list[str]] = []
    begin, at = 0, 0
    head, body = "", ""
    while mark := _MARK.search(text, at):
        place, sign = mark.start(), mark.group()
        if sign == "(":
            at = closing(text, place) + 1
            continue
        before = text[begin:place].strip()
        at = place + 1
        if sign == "{":
            space = _NAMESPACE.search(before)
            if space:
                spaces.append([part for part in (space[1] or "").split("::") if part])
                begin = at
                continue
            end = closing(text, place)
            head, body, at = before, text[place + 1 : end], end + 1
            if _is_type(before) or before.endswith("="):
                continue  # to its semicolon
            yield [one for given in spaces for one in given], head, ""
        elif sign == "}":
            if spaces:
                spaces.pop()
        elif before:
            yield [one for given in spaces for one in given], head or before, body
        head, body, begin = "", "", at


def _is_type(head: str) -> bool:
    plain = _without_template(head)[1]
    return _TYPE.match(plain) is not None and "(" not in plain


def _without_template(head: str) -> tuple[str, str]:
    """The template's parameters, where there are some, and the rest."""
    templates = ""
    while found := re.match(r"template\s*<", head):
        depth, at = 1, found.end()
        while depth and at < len(head):
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
        templates, head = templates + head[:at] + " ", head[at:].lstrip()
    return templates, head


def _declared(head: str, body: str) -> Iterator[tuple[str, str]]:
    """Name and form of what a statement declares."""
    head = re.sub(r"^(?:[A-Z][A-Z0-9_]+\s*\([^()]*\)\s*)+(?=\w)", "", head)
    template, plain = _without_template(head)
    alias, kind = _ALIAS.match(plain), _TYPE.match(plain)
    if alias:
        yield alias[1], f"using {normal(alias[2])}"
    elif kind and "(" not in plain:
        yield kind["name"], normal(f"{template}{kind['kind']} {{{_members(kind['kind'], body)}}}")
    elif function := _function(plain):
        yield function[0], normal(template) + function[1]
    elif not plain.startswith(("using ", "friend ", "namespace ", "typedef ")) and (
        variable := _VARIABLE.search(plain)
    ):
        yield variable[1], f"variable {normal(plain[: variable.start()])}"


def _members(kind: str, body: str) -> str:
    if kind.startswith("enum"):
        return body
    body = re.sub(r"\b(public|private|protected)\s*:(?!:)", "", body)
    found = []
    for _, head, inner in _statements(body):
        forms = [f"{name} {form}" for name, form in _declared(head, inner)]
        found += forms or [normal(head)]
    return "; ".join(sorted(found))


def _function(plain: str) -> tuple[str, str] | None:
    """Name and form, where the statement declares a function."""
    for found in _FUNCTION.finditer(plain):
        name = found[1]
        if name in _NO_NAMES or re.fullmatch(r"[A-Z][A-Z0-9_]+", name):
            continue
        if "=" in plain[: found.start()].replace("operator=", ""):
            return None
        end = closing(plain, found.end() - 1)
        after = re.match(r"\s*(const)?\b", plain[end + 1 :])
        constant = " const" if after and after[1] else ""
        parameters = normal(plain[found.end() : end])
        return name, f"{normal(plain[: found.start()])}({parameters}){constant}"
    return None


@functools.cache
def normal(text: str) -> str:
    """One spelling for what means the same."""
    text = " ".join(_NOISE.sub(" ", text).split())
    text = re.sub(r"\s*([*&,<>(){};=|])\s*", r"\1", text)
    text = re.sub(r"\bstd (?=::)", "std", text)
    return re.sub(r"([,;])", r"\1 ", re.sub(r"([&*>])(?=\w)", r"\1 ", text)).strip()
