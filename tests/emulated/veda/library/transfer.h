// tests/emulated/veda/library/transfer.h: copies and fills of device memory, given to a stream.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_TRANSFER_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_TRANSFER_H_

#include "tests/emulated/veda/library/devices.h"

namespace emulated {

// Each waits for the raw address first, and uses the device of the pointer, whatever is current.
// OUT_OF_BOUNDS at the call. Memory that was never allocated ends the process (end_process).
void copy_to_device(VEDAdeviceptr to, const void* from, std::size_t size, VEDAstream stream);
void copy_to_host(void* to, VEDAdeviceptr from, std::size_t size, VEDAstream stream);

// On one device: OUT_OF_BOUNDS and UNKNOWN_VPTR at the sync. Over two: through the host; the copy
// from the first device is done when this returns.
void copy_on_devices(VEDAdeviceptr to, VEDAdeviceptr from, std::size_t size, VEDAstream stream);

// The value of a memset, and the bytes of it that make one element.
struct Pattern {
  std::uint64_t width;
  std::uint64_t low;
  std::uint64_t high;
};

// rows of columns elements, pitch bytes apart; pitch 0 is a flat one, of one row, whose bounds are
// checked: OUT_OF_BOUNDS at the sync.
void fill_device(VEDAdeviceptr to, Pattern pattern, std::size_t pitch, std::size_t columns,
                 std::size_t rows, VEDAstream stream);
void fill_hmem(VEDAhmemptr to, Pattern pattern, std::size_t pitch, std::size_t columns,
               std::size_t rows, VEDAstream stream);

// HMEM: memory of a device under an address that says so, beside the addresses of the host.
bool is_hmem(const void* pointer);
std::uint64_t hmem_raw(const void* pointer);
// Throws Failure(UNKNOWN_HMEM) for an address of the host.
veda_context& hmem_context(const void* pointer);
VEDAhmemptr make_hmem(int device, std::uint64_t raw);
// From and to the host or HMEM of any device; done when it returns.
void copy_hmem(void* to, const void* from, std::size_t size);

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_TRANSFER_H_
