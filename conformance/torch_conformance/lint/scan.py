# conformance/torch_conformance/lint/scan.py: finds what is tied to CUDA in one parsed source.
"""scan(source) gives the findings of one file, in order, some with the edit that mends them.

Nothing outside a function is edited where that would need a device at import.
"""

from __future__ import annotations

import ast
import re

from torch_conformance.lint import forms
from torch_conformance.lint.edits import Edit, Finding, Place, only_safe

MARK = "# device-specific"  # at the end of a line: this one is meant
_STRING = re.compile(r"cuda(:\d+)?")
_DEVICE = re.compile(r"[a-z_]+(:\d+)?")
_OPENING = re.compile(rb"""[fFrR]{1,2}(\"{3}|'{3}|"|')cuda:""")
_WORDS = ("reason", "msg", "help")  # arguments that a reader reads
_TAKES_TYPE = (
    "torch.autocast",
    "torch.amp.autocast",
    "torch.amp.GradScaler",
    "torch.get_device_module",
)
_TAKES_DEVICE = (
    "torch.device",
    "torch.Generator",
    "torch.set_default_device",
    "torch.Stream",
    "torch.Event",
)


def scan(source: bytes) -> list[Finding]:
    """Findings of a source in UTF-8 without a mark. Raises SyntaxError, ValueError, RecursionError."""
    found = set(only_safe(_Scan(source, ast.parse(source.decode())).run()))
    lines = source.splitlines()
    marked = {n for n, line in enumerate(lines, 1) if line.rstrip().endswith(MARK.encode())}
    return sorted(f for f in found if f.line not in marked)


def _string_of(node: ast.AST) -> str:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


class _Scan(ast.NodeVisitor):
    def __init__(self, source: bytes, tree: ast.Module) -> None:
        self.source, self.tree = source, tree
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.found: list[Place] = []
        self.unit: ast.AST | None = None
        self.bound: dict[str, str] = {}  # a name of this file -> what it was imported as
        self.aliases: dict[str, ast.alias] = {}
        self.scopes: list[set[str]] = []  # arguments of the functions around, innermost last
        self.skipping = False  # inside the condition of a skip
        self.formatting = False  # inside an f-string, where places are not exact
        self.used: set[str] = set()

    def run(self) -> list[Place]:
        self._imports()
        self.visit(self.tree)
        self._unused_imports()
        return self.found

    # Places in the source.

    def _span(self, node: ast.expr | ast.alias) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.starts[node.lineno - 1] + node.col_offset
        return start, self.starts[node.end_lineno - 1] + node.end_col_offset

    def _edit(self, node: ast.expr | ast.alias, text: str) -> tuple[Edit, ...]:
        return () if self.formatting or not text else (Edit(*self._span(node), text),)

    def _after_bracket(self, node: ast.expr) -> int:
        """The place after the bracket that opens the call of node."""
        return self.source.index(b"(", self._span(node)[1]) + 1

    def _add(
        self, node: ast.expr | ast.alias | ast.stmt, proposal: str, edits: tuple[Edit, ...] = (),
        what: str = "", guard: str = "",
    ) -> None:  # fmt: skip
        if self.skipping and "torch.accelerator" in proposal:
            proposal += ", or @onlyAccelerator in a class given to instantiate_device_type_tests"
        text = what or " ".join(ast.unparse(node).split())
        finding = Finding(node.lineno, node.col_offset + 1, text[:100], proposal, edits)
        self.found.append(Place(finding, self.unit, guard))

    # What a name stands for.

    def _imports(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.split(".")[0]
                    self.bound[alias.asname or first] = alias.name if alias.asname else first
                    if re.match(r"torch\.cuda\b", alias.name):
                        self._add(node, forms.IMPORTED)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                self._import_from(node, node.module or "")

    def _import_from(self, node: ast.ImportFrom, module: str) -> None:
        for alias in node.names:
            name = alias.asname or alias.name
            self.bound[name] = f"{module}.{alias.name}"
            if forms.name_row(alias.name):
                self.aliases[name] = alias
        if re.match(r"torch\.cuda\b", module) or any(
            self.bound.get(a.asname or a.name) == "torch.cuda" for a in node.names
        ):
            self._add(node, forms.IMPORTED)

    def _dotted(self, node: ast.expr) -> str:
        """torch.cuda.is_available for whatever this file calls it; "" for anything else."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.bound.get(node.id, node.id), *reversed(parts)])

    # The device that a place may name instead.

    def _has_device(self) -> bool:
        return any("device" in scope for scope in self.scopes)

    def _generic(self, index: str = "", type_only: bool = False) -> str:
        """An expression for the device ("" where none is safe to write)."""
        if not self.scopes or self.bound.get("torch") != "torch":
            return "device" if self._has_device() and not (index or type_only) else ""
        base = "device" if self._has_device() else forms.CURRENT
        if not (index or type_only):
            return base
        kind = "torch.device(device).type" if self._has_device() else f"{forms.CURRENT}.type"
        return f'f"{{{kind}}}{index}"' if index else kind

    def _device_proposal(self, index: str = "", type_only: bool = False) -> str:
        return self._generic(index, type_only) or f"{forms.IN_TEST}, or {forms.CURRENT}"

    # Functions give scopes; their decorators and defaults lie outside.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        outer = self.unit
        self.unit = outer or (None if isinstance(node, ast.Lambda) else node)
        if not isinstance(node, ast.Lambda):
            for outside in (*node.decorator_list, *filter(None, [node.returns])):
                self.visit(outside)
        self.visit(node.args)
        arguments = node.args
        names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        self.scopes.append(names)
        for inside in [node.body] if isinstance(node, ast.Lambda) else node.body:
            self.visit(inside)
        self.scopes.pop()
        self.unit = outer

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_Lambda = visit_FunctionDef

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # not a docstring
            self.generic_visit(node)

    # Names.

    def visit_Attribute(self, node: ast.Attribute, keywords: bool = False) -> None:
        dotted = self._dotted(node)
        if dotted.startswith("torch.cuda."):
            self._cuda_name(node, dotted.removeprefix("torch.cuda."), keywords)
        elif row := next((r for r in forms.MODULES if dotted.startswith(r[0])), None):
            self._add(node, row[1])
        elif node.attr == "is_cuda":
            self._add(node, forms.IS_CUDA)
            self.visit(node.value)
        elif dotted.endswith("Backend.NCCL"):
            self._add(node, forms.NCCL)
        elif (known := forms.name_row(node.attr)) and known.module:
            self._add(node, known.proposal)
        else:
            self.visit(node.value)

    def _cuda_name(self, node: ast.Attribute, rest: str, keywords: bool) -> None:
        mended = forms.ACCELERATOR.get(rest)
        literal = ast.unparse(node).startswith("torch.cuda.")
        safe = mended and literal and not keywords
        edits = self._edit(node, f"torch.accelerator.{mended}") if safe else ()
        guard = f"torch.{rest}" if rest in forms.GUARDS else ""
        self._add(node, forms.cuda_proposal(rest), edits, guard=guard)

    def visit_Name(self, node: ast.Name) -> None:
        target = self.bound.get(node.id, "")
        row = forms.name_row(target.rpartition(".")[2] or node.id)
        if target.startswith("torch.cuda."):
            self._add(node, forms.cuda_proposal(target.removeprefix("torch.cuda.")))
        elif row and isinstance(node.ctx, ast.Load):
            self.used.add(node.id)
            self._add(node, row.proposal, self._renamed(node, row, target), guard=node.id)

    def _renamed(self, node: ast.Name, row: forms.Name, target: str) -> tuple[Edit, ...]:
        alias = self.aliases.get(node.id)
        if not alias or alias.asname or target != f"{row.module}.{alias.name}":
            return ()
        edits = self._edit(node, row.instead)
        if row.instead in self.bound:
            return edits
        return self._edit(alias, row.instead) + edits

    def _unused_imports(self) -> None:
        for name in self.aliases.keys() - self.used:
            alias = self.aliases[name]
            self._add(alias, "imported and not used: take it out", what=f"import of {alias.name}")

    # Calls.

    def visit_Call(self, node: ast.Call) -> None:
        name = self._dotted(node.func)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "cuda"
            and not name.startswith("torch.cuda")
        ):
            self._cuda_method(node, node.func)
            return
        if name in forms.AUTOCAST:
            self._autocast(node, name)
        elif isinstance(node.func, ast.Attribute):
            self.visit_Attribute(node.func, keywords=bool(node.keywords))
        else:
            self.visit(node.func)
        before = self.skipping
        self.skipping = bool(forms.SKIPS.search(name))
        for place, argument in enumerate(node.args):
            self._argument(argument, name, place, "")
        for keyword in node.keywords:
            self._argument(keyword.value, name, -1, keyword.arg or "")
        self.skipping = before

    def _cuda_method(self, node: ast.Call, func: ast.Attribute) -> None:
        """x.cuda(): the call becomes x.to(device); an index of a device is left to the reader."""
        device = self._generic()
        named = any(k.arg in (None, "device") for k in node.keywords)
        edits: tuple[Edit, ...] = ()
        if device and not (node.args or named or self.formatting):
            rest = ", " if node.keywords else ""
            start = self._span(func)[1] - len("cuda")
            edits = (Edit(start, self._after_bracket(func), f"to({device}{rest}"),)
        self._add(node, f".to({device or 'device'})", edits)
        for inner in (func.value, *node.args, *(k.value for k in node.keywords)):
            self.visit(inner)

    def _autocast(self, node: ast.Call, name: str) -> None:
        kind = self._generic(type_only=True)
        edits: tuple[Edit, ...] = ()
        if kind and not (node.args or self.formatting) and ast.unparse(node.func) == name:
            tail = self._after_bracket(node.func)
            first = Edit(tail, tail, kind + (", " if node.keywords else ""))
            edits = (*self._edit(node.func, forms.AUTOCAST[name]), first)
        self._add(node.func, forms.cuda_proposal(name.removeprefix("torch.cuda.")), edits)

    def _argument(self, node: ast.expr, call: str, place: int, keyword: str) -> None:
        """An argument of a call: a string there may be a device, or a backend."""
        string = _string_of(node)
        if string and (keyword in _WORDS or (place > 0 and forms.SKIPS.search(call))):
            return
        if keyword == "only_for" and "cuda" in ast.unparse(node):
            self._add(node, forms.ONLY_FOR)
        elif string and place == 0 and forms.SKIPS.search(call) and "cuda" in string:
            self._add(node, forms.CONDITION)
        elif string == "nccl" and (
            keyword == "backend" or call.endswith(("init_process_group", "new_group"))
        ):
            self._add(node, forms.NCCL)
        elif not _STRING.fullmatch(string):
            self.visit(node)
        elif keyword == "device_type" or (call in _TAKES_TYPE and place == 0):
            self._string(node, "", type_only=True)
        elif keyword in ("device", "map_location") or (
            place == 0 and (call in _TAKES_DEVICE or call.endswith(".to"))
        ):
            self._string(node, string.removeprefix("cuda"), type_only=False)
        else:
            self.visit(node)

    def _string(self, node: ast.expr, index: str, type_only: bool) -> None:
        generic = self._generic(index, type_only)
        self._add(node, self._device_proposal(index, type_only), self._edit(node, generic))

    # Other expressions.

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """ "cuda" if torch.cuda.is_available() else "cpu": one finding."""
        tested = (
            isinstance(node.test, ast.Call)
            and self._dotted(node.test.func) == "torch.cuda.is_available"
        )
        sides = [_string_of(side) for side in (node.body, node.orelse)]
        if tested and sides in (["cuda", "cpu"], ["cuda:0", "cpu"]):
            form = f"{forms.CUDA_OR_CPU}.type"
            self._add(
                node, form, self._edit(node, form) if self.bound.get("torch") == "torch" else ()
            )
        else:
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for side in (node.left, *node.comparators):
            if isinstance(side, ast.Constant | ast.Tuple | ast.List | ast.Set) and any(
                map(_STRING.fullmatch, map(_string_of, ast.walk(side)))
            ):
                self._add(node, forms.COMPARED)
            else:
                self.visit(side)

    def visit_List(self, node: ast.List | ast.Tuple | ast.Set) -> None:
        values = [str(n.value) for n in node.elts if isinstance(n, ast.Constant)]
        devices = all(_DEVICE.fullmatch(value) for value in values)
        if devices and "cpu" in values and any(map(_STRING.fullmatch, values)):
            self._add(node, forms.LISTED)
        else:
            self.generic_visit(node)

    visit_Tuple = visit_List
    visit_Set = visit_List

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        first = node.values[0] if node.values else None
        if isinstance(first, ast.Constant) and str(first.value).startswith("cuda:"):
            kind = self._generic(type_only=True)
            start, end = self._span(node)
            opening = _OPENING.match(self.source[start:end])
            edits: tuple[Edit, ...] = ()
            if kind and opening and not self.formatting:
                end = start + opening.end() - 1
                edits = (Edit(end - len("cuda"), end, f"{{{kind}}}"),)
            self._add(node, f'f"{{{kind or "torch.device(device).type"}}}:..."', edits)
        before, self.formatting = self.formatting, True
        self.generic_visit(node)
        self.formatting = before

    def visit_Constant(self, node: ast.Constant) -> None:
        string = _string_of(node)
        if _STRING.fullmatch(string):
            self._add(node, self._device_proposal(string.removeprefix("cuda")))
        elif re.fullmatch(r"torch\.cuda(\.\w+)+", string):
            self._add(node, forms.cuda_proposal(string.removeprefix("torch.cuda.")))
