// tests/emulated/veda/library/memset.cpp: VEDA's memsets of device memory and HMEM, of all widths.
#include "tests/emulated/veda/library/entry.h"
#include "tests/emulated/veda/library/transfer.h"

using emulated::entry;
using emulated::Pattern;

// The four forms of one memset. value: what makes the Pattern of its arguments.
#define EMULATED_VEDA_MEMSET(prefix, fill, pointer_type, bits, value, ...)                     \
  VEDAresult veda##prefix##D##bits(pointer_type pointer, __VA_ARGS__, size_t count) {          \
    return entry(#prefix "D" #bits, [&] { emulated::fill(pointer, value, 0, count, 1, -1); }); \
  }                                                                                            \
  VEDAresult veda##prefix##D##bits##Async(pointer_type pointer, __VA_ARGS__, size_t count,     \
                                          VEDAstream stream) {                                 \
    return entry(#prefix "D" #bits "Async",                                                    \
                 [&] { emulated::fill(pointer, value, 0, count, 1, stream); });                \
  }                                                                                            \
  VEDAresult veda##prefix##D2D##bits(pointer_type pointer, size_t pitch, __VA_ARGS__,          \
                                     size_t columns, size_t rows) {                            \
    return entry(#prefix "D2D" #bits,                                                          \
                 [&] { emulated::fill(pointer, value, pitch, columns, rows, -1); });           \
  }                                                                                            \
  VEDAresult veda##prefix##D2D##bits##Async(pointer_type pointer, size_t pitch, __VA_ARGS__,   \
                                            size_t columns, size_t rows, VEDAstream stream) {  \
    return entry(#prefix "D2D" #bits "Async",                                                  \
                 [&] { emulated::fill(pointer, value, pitch, columns, rows, stream); });       \
  }

#define EMULATED_VEDA_ALL_MEMSETS(prefix, fill, type)                                  \
  EMULATED_VEDA_MEMSET(prefix, fill, type, 8, (Pattern{1, value, 0}), uint8_t value)   \
  EMULATED_VEDA_MEMSET(prefix, fill, type, 16, (Pattern{2, value, 0}), uint16_t value) \
  EMULATED_VEDA_MEMSET(prefix, fill, type, 32, (Pattern{4, value, 0}), uint32_t value) \
  EMULATED_VEDA_MEMSET(prefix, fill, type, 64, (Pattern{8, value, 0}), uint64_t value) \
  EMULATED_VEDA_MEMSET(prefix, fill, type, 128, (Pattern{16, x, y}), uint64_t x, uint64_t y)

EMULATED_VEDA_ALL_MEMSETS(Memset, fill_device, VEDAdeviceptr)
EMULATED_VEDA_ALL_MEMSETS(HMemset, fill_hmem, VEDAhmemptr)
