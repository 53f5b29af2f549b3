"""Driver libraries whose answers are nonsense: refused in words for the vendor, the others compute."""

import json
import re

import pytest

from sandbox import build_c

pytestmark = pytest.mark.both_modes

# What a driver says of its device, as statements on p, and what the refusal says.
LIES = {
    "typo": ('strcpy(p->dialect, "opencl_c"); p->device_class = 1;',
             r"dialect 'opencl_c', expected one of 'c', 'opencl-c', 'cuda-c' \(did you mean 'opencl-c'\?\)"),
    "upper": ('strcpy(p->dialect, "C"); p->device_class = 0;', r"did you mean 'c'\?"),
    "far": ('strcpy(p->dialect, "metal-shading"); p->device_class = 1;',
            r"'metal-shading', expected one of 'c', 'opencl-c', 'cuda-c', so"),
    "c on a gpu": ('strcpy(p->dialect, "c"); p->device_class = 1;',
                   r"dialect 'c' for a device of the class GRAFT_GPU_LIKE.*GRAFT_CPU_LIKE only"),
    "cuda on a cpu": ('strcpy(p->dialect, "cuda-c"); p->device_class = 0;',
                      r"dialect 'cuda-c' for a device of the class GRAFT_CPU_LIKE"),
    "no kernels": ('strcpy(p->dialect, "c"); p->device_class = 0;',
                   "its driver lacks program_compile and kernel_find"),
    "class": ("p->device_class = 9;", "unknown device class"),
    "no units": ("p->compute_units = 0;", "no compute units"),
    "no group": ("p->max_group_size = 0;", "groups of 0 work-items"),
    "no sub-group": ("p->sub_group_size = 0;", "sub-groups of 0 work-items"),
    "wide sub-group": ("p->sub_group_size = 128;", "sub-groups of 128 work-items in groups of at most 64"),
    "odd shuffles": ("p->features |= GRAFT_FEATURE_SHUFFLES; p->sub_group_size = 24;",
                     "GRAFT_FEATURE_SHUFFLES with sub-groups of 24"),
    "lone shuffles": ("p->features |= GRAFT_FEATURE_SHUFFLES; p->sub_group_size = 1;",
                      "GRAFT_FEATURE_SHUFFLES with sub-groups of 1"),
    "no memory": ("p->memory_bytes = 0;", "no memory"),
    "odd alignment": ("p->allocation_alignment = 24;", "24, expected a power of two"),
    "vast alignment": ("p->allocation_alignment = 1ull << 40;",
                       "an alignment of 1099511627776 bytes with 1073741824 bytes of memory"),
    "vast piece": ("p->max_allocation_bytes = 1ull << 31;",
                   "allocations of up to 2147483648 bytes with 1073741824"),
    "priorities": ("p->priority_highest = 1; p->priority_lowest = 3;",
                   "priorities from 1 to 3, expected a range that holds 0"),
    "overrun": ("memset(p + 1, 7, 8);", "more than struct_size bytes"),
}  # fmt: skip
# What a table leaves out or does wrong, as statements on table.
TABLES = {
    "launch alone": ("table->kernel_launch = (void*)later;", r"kernel_find \(kernel_launch is given\)"),
    "find alone": ("table->kernel_find = (void*)later;", r"kernel_launch \(kernel_find is given\)"),
    "compile alone": ("table->program_compile = (void*)later;", r"program_load \(program_compile is given\)"),
    "export alone": ("table->memory_export = (void*)later;",
                     r"memory_import \(memory_export is given\), memory_release \(memory_export"),
    "no count": ("table->device_count = no_count;", "returned OK without a count"),
    "vast count": ("table->device_count = vast_count;", "claims 4000000000 devices"),
    "odd status": ("return (graft_status)77;", "UNKNOWN_STATUS"),
}  # fmt: skip
# Sound, though unusual: the device is used.
SOUND = {
    "newer features": "p->features |= 0xFF000000u;",
    "newer dtypes": "p->dtypes = 1u << 31 | 1u << GRAFT_FLOAT32 | 1u << GRAFT_INT64;",
    "struct_size": "p->struct_size = 3;",
    "no UTF-8": 'memcpy(p->name, "Chip \\xff\\xc3( \\x01 \\xe2\\x82\\xac", 14); p->name[14] = 0;',
    "no end": "memset(p->name, 'x', sizeof p->name);",
    "no name": "p->name[0] = 0;",
}
PAUSE = 60.0


def source(facts, table, name):
    return f"""
    #define graft_driver_query tiny_query
    #include "tiny.c"
    #undef graft_driver_query
    static graft_status later(void) {{ return GRAFT_UNSUPPORTED; }}
    static graft_status no_count(uint32_t* n) {{ (void)n; return GRAFT_OK; }}
    static graft_status vast_count(uint32_t* n) {{ *n = 4000000000u; return GRAFT_OK; }}
    static graft_status lie(uint32_t ordinal, graft_device_properties* p) {{
      const graft_status status = device_properties(ordinal, p);
      if (status == GRAFT_OK) {{ {facts} }}
      return status;
    }}
    graft_status graft_driver_query(graft_driver_table* table) {{
      const graft_status status = tiny_query(table);
      (void)later; (void)no_count; (void)vast_count;
      table->name = "{name}";
      table->device_properties = lie;
      {table}
      return status;
    }}"""


LOAD = """
    import time
    m = torch.get_device_module(D)
    found = {}
    for name, path in json.loads(os.environ["PATHS"]).items():
        began, text = time.monotonic(), ""
        count, refused = m.device_count(), len(m.refusals())
        try:
            m.load_driver(path)
        except RuntimeError as error:
            text = str(error)
        text += " ".join(r.reason for r in m.refusals()[refused:] if r.path == path)
        alive = (torch.ones(2, device=D + ":0") + 1).tolist()
        named = [p.name for p in m.devices()[count:]]
        found[name] = [text, m.device_count() - count, named, alive, time.monotonic() - began]
    print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def loads(tmp_path_factory, python):
    """What became of each driver, all loaded into one process beside the host's devices."""
    folder = tmp_path_factory.mktemp("liars")
    paths = {}
    for kind, rows in (("facts", LIES), ("table", TABLES), ("facts", SOUND)):
        for name, row in rows.items():
            code = row if isinstance(row, str) else row[0]
            short = re.sub("[^a-z0-9]", "_", name.lower())
            text = source(*((code, "") if kind == "facts" else ("", code)), short)
            paths[name] = build_c(folder / f"{short}.so", text, "-w", "-O1")
    names = ",".join(["host", *(re.sub("[^a-z0-9]", "_", n.lower()) for n in paths)])
    return python(LOAD, PATHS=json.dumps(paths), GRAFT_DEVICES=names).value()


@pytest.mark.parametrize("name", [*LIES, *TABLES])
def test_a_lie_is_refused_in_words_for_the_vendor(loads, name):
    text, devices, _, alive, seconds = loads[name]
    assert re.search((LIES | TABLES)[name][1], text), text
    assert devices == 0
    assert alive == [2, 2]
    assert seconds < PAUSE
    assert re.search(r"(?i)ask its vendor|returned UNKNOWN_STATUS", text), text


@pytest.mark.parametrize("name", SOUND)
def test_what_is_sound_is_used(loads, name):
    text, devices, named, alive, seconds = loads[name]
    assert (text, devices, alive) == ("", 1, [2, 2])
    assert seconds < PAUSE
    shown = {"no UTF-8": "Chip ??( ? €", "no end": "x" * 127, "no name": ""}
    assert named == [shown.get(name, "Tiny device")]


MESSAGE = """
    static graft_status words(char* text, size_t capacity) {
      (void)capacity; memcpy(text, "bad \\xff\\xfe words", 13); text[13] = 0; return GRAFT_OK;
    }
    static graft_status full(graft_device d, uint64_t bytes, graft_address* out) {
      (void)d; (void)bytes; (void)out; return GRAFT_INTERNAL;
    }"""


def test_a_message_that_is_no_text_keeps_its_error(tmp_path, python):
    text = source("", "table->last_message = words; table->memory_allocate = full;", "words")
    path = build_c(tmp_path / "words.so", text.replace("static graft_status later", MESSAGE
                                                       + "static graft_status later", 1), "-w")  # fmt: skip
    ran = python(
        """
        try:
            torch.ones(2, device=D + ":1")
        except RuntimeError as error:
            print(error)
        print((torch.ones(2, device=D + ":0") + 1).tolist())
        """,
        GRAFT_DRIVER_PATH=path, GRAFT_DEVICES="host,words", GRAFT_HOST_DEVICES="1",
    ).good()  # fmt: skip
    assert f"{ran.out}".count("bad ?? words") == 1, ran.out
    assert "[2.0, 2.0]" in ran.out


def test_a_lie_in_the_environment_is_told_once(tmp_path, python):
    path = build_c(tmp_path / "typo.so", source(LIES["typo"][0], "", "typo"), "-w")
    ran = python(
        "print((torch.ones(2, device=D) + 1).tolist(), torch.accelerator.device_count())",
        GRAFT_DRIVER_PATH=path, GRAFT_HOST_DEVICES="1",
    ).good()  # fmt: skip
    assert "[2.0, 2.0] 1" in ran.out
    assert len([line for line in ran.err.splitlines() if "did you mean 'opencl-c'" in line]) == 1


def test_properties_have_what_the_driver_states(tmp_path, python):
    facts = ("p->max_arguments = 12; p->dtypes = 1u << GRAFT_FLOAT32 | 1u << GRAFT_FLOAT64;"
             "p->max_allocation_bytes = 1 << 20; p->features |= GRAFT_FEATURE_FLOAT16;")  # fmt: skip
    # It cannot be opened, and need not be.
    table = "table->device_open = (void*)later;"
    path = build_c(tmp_path / "few.so", source(facts, table, "few"), "-w")
    found = python(
        """
        p, h = (torch.get_device_module(D).get_device_properties(i) for i in (1, 0))
        opened = torch.get_device_module(D).is_initialized()
        supported = [torch.accelerator.get_device_capability(f"{D}:{i}")["supported_dtypes"]
                     for i in (0, 1)]
        print(json.dumps([p.max_arguments, [str(d) for d in p.dtypes], p.max_allocation, p.float64,
                          p.float16, p.device_class, p.kernels, p.compiler, h.max_arguments,
                          len(h.dtypes), h.float64, h.device_class, h.kernels, h.compiler,
                          sorted(map(str, supported[1])), len(supported[0]), opened]))
        """,
        GRAFT_DRIVER_PATH=path, GRAFT_DEVICES="host,few", GRAFT_HOST_DEVICES="1",
    ).value()  # fmt: skip
    assert found[:8] == [12, ["torch.float32"], 1 << 20, False, True, "gpu", False, False]
    assert found[8:14] == [0, 12, True, "cpu", True, True]
    assert found[14:] == [["torch.float32"], 12, False]
