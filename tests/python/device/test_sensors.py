"""torch.graft's sensors in torch.cuda's units, and what a driver without one says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox import Ran, build_c

# tiny.c with three of the four sensors.
DRIVER = """
#define graft_driver_query tiny_query
#include "tiny.c"
#undef graft_driver_query
static graft_status sensor(graft_device device, uint32_t which, int64_t* out) {
  static const int64_t values[] = {56400, 92500, 1400000000};
  (void)device;
  if (which > GRAFT_SENSOR_CLOCK) return GRAFT_NOT_FOUND;
  *out = values[which];
  return GRAFT_OK;
}
graft_status graft_driver_query(graft_driver_table* table) {
  graft_driver_table mine = kTable;
  mine.device_sensor = sensor;
  return graft_driver_fill(table, &mine);
}
"""


def test_sensors_have_the_units_of_torch_cuda(python: Callable[..., Ran], tmp_path: Path) -> None:
    ran = python(
        """
        module = torch.get_device_module(D)
        assert module.temperature() == 56
        assert module.power_draw(0) == 92500
        assert module.clock_rate(f"{D}:0") == 1400
        try:
            module.utilization()
        except RuntimeError as error:
            print(error)
        """,
        GRAFT_DRIVER_PATH=build_c(tmp_path / "sensing.so", DRIVER),
        GRAFT_DEVICES="tiny",
    )
    assert "gives no utilization: its driver has no such sensor" in ran.good().out


@pytest.mark.parametrize("name", ["temperature", "power_draw", "clock_rate", "utilization"])
def test_a_driver_without_sensors_says_so(module: Any, device: str, name: str) -> None:
    with pytest.raises(RuntimeError, match="its driver reads no sensors"):
        getattr(module, name)(device)
