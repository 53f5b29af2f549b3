// tests/emulated/veda/request/settings.h: the settings of the emulated library, one table, read
// from the environment by vedaInit.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_SETTINGS_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_SETTINGS_H_

#include <cstdint>
#include <string>

namespace emulated {

// X(field, type, variable after EMULATED_VEDA_, default). Numbers may end in K, M or G (1024).
#define EMULATED_VEDA_SETTINGS(X)                                                          \
  X(devices, std::int64_t, "DEVICES", 1)              /* cards; 0 is a host without any */ \
  X(numa, std::int64_t, "NUMA", 1)                    /* devices of each card */           \
  X(model, std::string, "MODEL", "VE1")               /* VE1, VE2 or VE3 */                \
  X(memory, std::int64_t, "MEMORY", INT64_C(1) << 30) /* bytes of each device */           \
  X(cores, std::int64_t, "CORES", 8)                  /* of each device */                 \
  X(clock, std::int64_t, "CLOCK", 1400)               /* MHz */                            \
  X(temperature, double, "TEMPERATURE", 56.0)         /* of core 0; "none": no sensor */   \
  X(voltage, double, "VOLTAGE", 12.0)                 /* V */                              \
  X(current, double, "CURRENT", 3.0)                  /* A */                              \
  X(voltage_edge, double, "VOLTAGE_EDGE", 12.0)       /* V */                              \
  X(current_edge, double, "CURRENT_EDGE", 0.5)        /* A */                              \
  X(bandwidth, std::int64_t, "BANDWIDTH", 0)          /* bytes/s of copies; 0: no limit */ \
  X(latency, std::int64_t, "LATENCY", 0)              /* microseconds before a request */  \
  X(indices, std::int64_t, "INDICES", 4194303)        /* pointers of each device */        \
  X(requests, std::int64_t, "REQUESTS", 0)            /* of a stream between two waits */  \
  X(fail, std::string, "FAIL", "")                    /* function:nth:CODE,... */          \
  X(fault, std::string, "FAULT", "")                  /* kind:kernel:nth,... */            \
  X(abort, std::int64_t, "ABORT", 1)                  /* 0: ASSERT where VEDA aborts */    \
  X(keep_failed, std::int64_t, "KEEP_FAILED", 1)      /* a failed request stays queued */  \
  X(process, std::string, "PROCESS", "")              /* the file emulated_ve */

struct Settings {
#define EMULATED_VEDA_FIELD(field, type, variable, initial) type field = initial;
  EMULATED_VEDA_SETTINGS(EMULATED_VEDA_FIELD)
#undef EMULATED_VEDA_FIELD

  // NEC's own variables.
  std::string visible_devices;  // VEDA_VISIBLE_DEVICES
  std::string node_list;        // _VENODELIST
  std::string node;             // VE_NODE_NUMBER
  std::string architecture;     // VEDA_ARCH
  std::string library_path;     // VE_LD_LIBRARY_PATH
  int omp_threads = 0;          // VE_OMP_NUM_THREADS, before VEDA writes its own
  bool has_runner = false;      // VEORUN_BIN

  // 1 for VE1 and VE2, 3 for VE3, or what VEDA_ARCH says; 0 if the model does not run that.
  int device_architecture() const;
};

// Throws Failure(INVALID_VALUE) and prints the variable, its value and what was expected.
Settings read_settings();

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_SETTINGS_H_
