// tests/emulated/veda/device_kernels.c: device code of the emulator's tests: one kernel for
// each way to get arguments.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/emulated/veda/device.h"

uint64_t add_integers(int8_t a, int16_t b, int32_t c, int64_t d, uint8_t e, uint16_t f, uint32_t g,
                      uint64_t h) {
  return (uint64_t)(a + b + c + d + (int64_t)e + f + (int64_t)g + (int64_t)h);
}

// Every second one is a float or a double, more than the registers hold.
uint64_t weigh(int64_t a, float b, int64_t c, double d, int64_t e, float f, int64_t g, double h,
               int64_t i, float j, int64_t k, double l, int64_t m, float n, int64_t o, double p,
               int64_t q, float r, int64_t s, double t) {
  const double whole =
      (double)(a + 2 * c + 3 * e + 4 * g + 5 * i + 6 * k + 7 * m + 8 * o + 9 * q + 10 * s);
  return (uint64_t)(whole + b + 2 * d + 3 * f + 4 * h + 5 * j + 6 * l + 7 * n + 8 * p + 9 * r +
                    10 * t);
}

#define WORD(n) uint64_t a##n
#define TEN(d)                                                                                    \
  WORD(d##0), WORD(d##1), WORD(d##2), WORD(d##3), WORD(d##4), WORD(d##5), WORD(d##6), WORD(d##7), \
      WORD(d##8), WORD(d##9)
#define SUM(d)                                                                                    \
  (d##0 + 2 * d##1 + 3 * d##2 + 4 * d##3 + 5 * d##4 + 6 * d##5 + 7 * d##6 + 8 * d##7 + 9 * d##8 + \
   10 * d##9)
uint64_t many(TEN(1), TEN(2), TEN(3), TEN(4)) {
  return SUM(a1) + 100 * SUM(a2) + 10000 * SUM(a3) + 1000000 * SUM(a4);
}

// y = a * x + y through raw addresses.
void saxpy(float a, const float* x, float* y, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) y[i] += a * x[i];
}

// The same with the pointers of VEDA.
uint64_t saxpy_pointers(float a, VEDAdeviceptr x, VEDAdeviceptr y, uint64_t count) {
  void *raw_x = NULL, *raw_y = NULL;
  VEDAresult result = vedaMemPtr(&raw_x, x);
  if (result == VEDA_SUCCESS) result = vedaMemPtr(&raw_y, y);
  if (result == VEDA_SUCCESS) saxpy(a, raw_x, raw_y, count);
  return result;
}

// Each value of the buffer grows by one.
void increment(int32_t* buffer, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) ++buffer[i];
}

uint64_t sum(const int32_t* buffer, uint64_t count) {
  uint64_t total = 0;
  for (uint64_t i = 0; i < count; ++i) total += (uint64_t)buffer[i];
  return total;
}

uint64_t allocate_delayed(VEDAdeviceptr pointer, uint64_t size, int32_t value) {
  void* raw = NULL;
  const VEDAresult result = vedaMemAllocPtr(&raw, pointer, size);
  if (result == VEDA_SUCCESS) vedaMemsetD32(raw, (uint32_t)value, size / 4);
  return result;
}

uint64_t allocate_only(VEDAdeviceptr pointer, uint64_t size) { return vedaMemAlloc(pointer, size); }
uint64_t free_delayed(VEDAdeviceptr pointer) { return vedaMemFree(pointer); }
uint64_t swap_pointers(VEDAdeviceptr a, VEDAdeviceptr b) { return vedaMemSwap(a, b); }

uint64_t size_of(VEDAdeviceptr pointer) {
  size_t size = 0;
  void* raw = NULL;
  const VEDAresult result = vedaMemPtrSize(&raw, &size, pointer);
  if (result != VEDA_SUCCESS) return UINT64_C(1000000) + result;
  size_t again = 0;
  return vedaMemSize(&again, pointer) == VEDA_SUCCESS && again == size ? size : 0;
}

uint64_t set_all_widths(uint8_t* raw) {
  vedaMemsetD8(raw, 1, 8);
  vedaMemsetD16(raw + 8, 0x202, 4);
  vedaMemsetD32(raw + 16, 0x3030303, 2);
  vedaMemsetD64(raw + 24, UINT64_C(0x404040404040404), 1);
  vedaMemsetD128(raw + 32, UINT64_C(0x505050505050505), UINT64_C(0x606060606060606), 1);
  vedaMemcpy(raw + 48, raw, 8);
  uint64_t total = 0;
  for (int i = 0; i < 56; ++i) total += raw[i];
  return total;
}

uint64_t hmem_sum(VEDAhmemptr pointer, uint64_t count) {
  void* raw = NULL;
  vedaHMemPtr(&raw, pointer);
  return sum(raw, count);
}

static void mark(void* context, int core, int cores) {
  ((int32_t*)context)[core] = core + 1 + 100 * cores;
}
uint64_t use_cores(int32_t* marks) {
  emulated_ve_parallel(mark, marks);
  emulated_ve_parallel(mark, marks);
  return (uint64_t)emulated_ve_cores();
}

uint64_t cores(void) { return (uint64_t)emulated_ve_cores(); }
uint64_t omp_threads(void) { return (uint64_t)atoi(getenv("VE_OMP_NUM_THREADS")); }
uint64_t process(void) { return (uint64_t)getpid(); }
uint64_t nap(uint64_t microseconds) {
  usleep((useconds_t)microseconds);
  return microseconds;
}

uint64_t read_word(const uint64_t* address) { return *address; }
void write_word(uint64_t* address, uint64_t value) { *address = value; }
void crash(void) { *(volatile int*)8 = 1; }
void end(void) { exit(3); }
void stop(void) { abort(); }
void hang(void) {
  for (;;) usleep(100000);
}
