/* include/graft/device_facts.h: what a driver says of its devices; driver.h includes it.
 *
 * The caller zeroes each of these structs and sets struct_size; a driver writes no byte beyond it,
 * and leaves what it does not know as it is. A newer minor adds fields at a struct's end only.
 */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_DEVICE_FACTS_H_
#define GRAFT_DEVICE_FACTS_H_

#include <stdint.h>

#ifdef __cplusplus
#define GRAFT_STATIC_ASSERT(condition, text) static_assert(condition, text)
extern "C" {
#else
#define GRAFT_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/* Classes of devices, which get kernels of different shape: see docs/develop/kernels.md. */
typedef enum graft_device_class {
  /* One work-item computes a whole tile with wide vectors; no local memory, no barriers. */
  GRAFT_CPU_LIKE = 0,
  /* Many work-items share local memory and meet at barriers. */
  GRAFT_GPU_LIKE = 1
} graft_device_class;

/* Bits of graft_device_properties.features. */
#define GRAFT_FEATURE_POINTERS_IN_MEMORY 0x1u /* kernels may load addresses from memory */
#define GRAFT_FEATURE_FLOAT64 0x2u            /* kernels may compute in float64 */
#define GRAFT_FEATURE_FLOAT16 0x4u            /* kernels may compute in float16 */
#define GRAFT_FEATURE_INT64_ATOMICS 0x8u      /* 64-bit atomics on global memory */
#define GRAFT_FEATURE_SIMULATED 0x10u         /* no hardware: default if there is no other device */
#define GRAFT_FEATURE_ONLY_NAMED 0x20u        /* used only if GRAFT_DEVICES names it */
#define GRAFT_FEATURE_SHUFFLES 0x40u          /* sub-groups, of 2^n work-items, exchange values */

/* Properties of a device. */
typedef struct graft_device_properties {
  uint32_t struct_size;
  uint32_t device_class;     /* graft_device_class */
  uint32_t features;         /* GRAFT_FEATURE_ bits */
  uint32_t compute_units;    /* cores, multiprocessors; at least 1 */
  uint32_t max_group_size;   /* work-items in one group; at least 1 */
  uint32_t sub_group_size;   /* work-items in lockstep, or lanes of a float32 vector */
  uint32_t capability_major; /* the vendor's own version of the architecture */
  uint32_t capability_minor;
  uint64_t memory_bytes;         /* all of the device's memory */
  uint64_t local_memory_bytes;   /* per group; 0 if there is none */
  uint64_t allocation_alignment; /* every address from memory_allocate is a multiple of this */
  uint64_t max_allocation_bytes; /* largest single allocation; 0 means memory_bytes */
  int32_t priority_lowest;       /* stream priorities; 0 is normal, smaller runs first */
  int32_t priority_highest;
  char name[128];
  char vendor[64];
  char dialect[32]; /* source language of program_compile: one of GRAFT_DIALECTS, or "" for none */
  /* Since 0.3. Graft runs an operator that exceeds these on the CPU, and counts it. */
  uint32_t max_arguments; /* arguments of one launch; 0: no limit */
  uint32_t dtypes;        /* that kernels read and write, bits 1 << graft_dtype; 0: all */
  /* Since 0.5. */
  uint64_t
      map_granularity; /* memory_map's addresses and bytes are multiples of it; 0: no mapping */
} graft_device_properties;

/* Bits of graft_device_identity.known. */
#define GRAFT_IDENTITY_UUID 0x1u
#define GRAFT_IDENTITY_PCI 0x2u

/* Which device of which machine this is. */
typedef struct graft_device_identity {
  uint32_t struct_size;
  uint32_t known;   /* GRAFT_IDENTITY_ bits of the numbers below that the driver sets */
  uint8_t uuid[16]; /* the same in each process and after each restart */
  uint32_t pci_domain;
  uint32_t pci_bus;
  uint32_t pci_device;
  uint32_t pci_function;
  char driver_version[64];   /* of the vendor's software, in its own form; "" if unknown */
  char firmware_version[64]; /* of what runs on the device; "" if unknown */
} graft_device_identity;

/* How two devices of a driver are linked. LINK(name, value, text) */
#define GRAFT_LINKS(LINK)                                              \
  LINK(HOST, 0, "host memory")   /* no copies from device to device */ \
  LINK(BUS, 1, "bus")            /* a bus that others share, as PCI */ \
  LINK(DIRECT, 2, "direct link") /* wires between devices, a switch */ \
  LINK(SHARED, 3, "same memory") /* both are parts of one chip */

#define GRAFT_ENUMERATE(name, value, text) GRAFT_LINK_##name = value,
typedef enum graft_link_kind { GRAFT_LINKS(GRAFT_ENUMERATE) } graft_link_kind;
#undef GRAFT_ENUMERATE

/* A link. */
typedef struct graft_device_link {
  uint32_t struct_size;
  uint32_t kind;             /* graft_link_kind */
  uint64_t bytes_per_second; /* in one direction; 0 if unknown */
} graft_device_link;

/* Source languages of program_compile. DIALECT(text, classes of devices that it serves, as bits) */
#define GRAFT_DIALECTS(DIALECT)                                    \
  DIALECT("c", 1u << GRAFT_CPU_LIKE)                               \
  DIALECT("opencl-c", 1u << GRAFT_CPU_LIKE | 1u << GRAFT_GPU_LIKE) \
  DIALECT("cuda-c", 1u << GRAFT_GPU_LIKE)

/* Sensors that device_sensor reads. SENSOR(name, value, unit) */
#define GRAFT_SENSORS(SENSOR)                                                      \
  SENSOR(TEMPERATURE, 0, "thousandths of a degree C")                              \
  SENSOR(POWER, 1, "milliwatts")                                                   \
  SENSOR(CLOCK, 2, "hertz")                                                        \
  /* Share of the driver's latest sampling period in which the device computed. */ \
  SENSOR(UTILIZATION, 3, "percent")

#define GRAFT_ENUMERATE(name, value, unit) GRAFT_SENSOR_##name = value,
typedef enum graft_sensor { GRAFT_SENSORS(GRAFT_ENUMERATE) } graft_sensor;
#undef GRAFT_ENUMERATE

GRAFT_STATIC_ASSERT(sizeof(graft_device_properties) == 312, "the properties' layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_device_identity) == 168, "the identity's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_device_link) == 16, "the link's layout is frozen");

#ifdef __cplusplus
}
#endif

#endif /* GRAFT_DEVICE_FACTS_H_ */
