// drivers/veda/catalog.h: the Vector Engines of this machine, looked up once.
#ifndef GRAFT_DRIVERS_VEDA_CATALOG_H_
#define GRAFT_DRIVERS_VEDA_CATALOG_H_

#include <string>
#include <vector>

#include "api.h"
#include "graft/driver.h"

namespace graft::veda {

struct Listed {
  VEDAdevice device = 0;
  int model = 1;  // 1, 2 or 3: VE1, VE2 or VE3
  graft_device_properties properties = {};
};

struct Catalog {
  std::vector<Listed> devices;  // those that VEDA_VISIBLE_DEVICES leaves, in VEDA's order
  graft_status status = GRAFT_OK;
  std::string problem;  // why status is not OK, or why there is no device
};

// Opens no device. A missing libveda is a failure only if GRAFT_VEDA_LIBRARY names it. Thread-safe.
const Catalog& catalog();

// Whether this process was forked after the catalog was made.
bool forked();

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_CATALOG_H_
