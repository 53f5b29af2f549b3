"""Fork: before use the child may use the device, after use it is told how to start instead."""

import pytest

from sandbox import build_c

pytestmark = [pytest.mark.both_modes, pytest.mark.any_driver]

SLOW = """
    #include <time.h>
    #include <unistd.h>
    #define graft_driver_query tiny_query
    #include "tiny.c"
    #undef graft_driver_query
    static graft_status slow_count(uint32_t* n) { sleep(2); *n = 0; return GRAFT_OK; }
    graft_status graft_driver_query(graft_driver_table* table) {
      graft_status status = tiny_query(table);
      table->name = "slow";
      table->device_count = slow_count;
      return status;
    }"""

CHILD = """
    def in_child(work):
        read, write = os.pipe()
        if os.fork() == 0:
            try:
                text = str(work())
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"
            os.write(write, text.encode()[:4000])
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as file:
            text = file.read()
        os.wait()
        return text
    def use():
        return (torch.ones(3, device=D) + 1).tolist()
    def cpu_backward():
        x = torch.ones(3, requires_grad=True)
        (x * 2).sum().backward()
        return x.grad.tolist()
"""


def test_fork_before_use(python):
    assert python(CHILD + "    print(json.dumps(in_child(use)))").value() == "[2.0, 2.0, 2.0]"


def test_fork_after_use(python):
    found = python(
        CHILD
        + """
    x = torch.ones(3, device=D)
    found = [in_child(use), in_child(lambda: x.cpu()), in_child(torch.accelerator.synchronize),
             in_child(lambda: torch.ones(2).tolist()),
             in_child(lambda: torch.get_device_module(D)._is_in_bad_fork())]
    assert use() == [2, 2, 2]
    print(json.dumps(found))
    """
    ).value()
    for text in found[:3]:
        assert "Cannot re-initialize Graft in forked subprocess" in text
        assert "spawn" in text
    assert found[3:] == ["[1.0, 1.0]", "True"]


def test_cpu_backward_in_the_child(python):
    # As with torch.cuda: the autograd engine refuses a fork once its device threads have started.
    started, fresh = python(
        CHILD
        + """
    fresh = in_child(cpu_backward)
    y = torch.ones(3, device=D, requires_grad=True)
    (y * 2).sum().backward()
    print(json.dumps([in_child(cpu_backward), fresh]))
    """
    ).value()
    assert fresh == "[2.0, 2.0, 2.0]"
    assert "fork" in started


def test_data_loader_workers(python):
    python("""
        from torch.utils.data import DataLoader, TensorDataset
        if __name__ == "__main__":
            torch.ones(2, device=D)
            data = TensorDataset(torch.arange(40.0))
            loader = DataLoader(data, 10, num_workers=2, pin_memory=True)
            total = sum(x.to(D, non_blocking=True).sum().item() for (x,) in loader)
            assert total == 780, total
        """).good()


def test_fork_while_another_thread_loads_a_driver(python, tmp_path):
    # The child must not wait for a lock whose holder did not come along.
    found = python(
        CHILD
        + """
    import threading, time
    module = torch.get_device_module(D)
    loading = threading.Thread(target=module.load_driver, args=(os.environ["SLOW"],))
    loading.start()
    time.sleep(0.5)
    def count():
        import signal
        signal.alarm(20)
        return module.device_count()
    found = in_child(count)
    loading.join()
    print(json.dumps([found, module.device_count()]))
    """,
        timeout=60,
        SLOW=build_c(tmp_path / "slow.so", SLOW),
    ).value()
    assert found[0] == str(found[1])
