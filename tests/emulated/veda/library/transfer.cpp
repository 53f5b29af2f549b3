// tests/emulated/veda/library/transfer.cpp: copies and fills of device memory, given to a stream.
#include "tests/emulated/veda/library/transfer.h"

#include <cstring>
#include <vector>

#include "tests/emulated/veda/library/entry.h"

namespace emulated {
namespace {

constexpr std::uint64_t kHmemFlag = UINT64_C(1) << 63;
constexpr int kHmemDeviceShift = 59;
constexpr std::uint64_t kHmemAddress = (UINT64_C(1) << kHmemDeviceShift) - 1;

std::uint64_t number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// The raw address of pointer, of which size bytes are used.
std::uint64_t usable(veda_context& context, VEDAdeviceptr pointer, std::size_t size,
                     const char* rule) {
  const AllocationHandle found = context.resolve(pointer);
  const std::uint64_t raw = found->raw;
  const std::uint64_t whole = found->size;
  if (raw == 0 || whole == 0) end_process(rule);
  const std::uint64_t offset = VEDA_GET_OFFSET(pointer);
  require(offset <= whole && size <= whole - offset, VEDA_ERROR_OUT_OF_BOUNDS);
  return raw + offset;
}

void write(Link& link, std::uint64_t raw, const void* from, std::size_t size) {
  link.ask(Command::kWrite, {raw}, from, size);
}

void read(Link& link, std::uint64_t raw, void* to, std::size_t size) {
  link.ask(Command::kRead, {raw, size});
  link.receive(to, size);
}

}  // namespace

void copy_to_device(VEDAdeviceptr to, const void* from, std::size_t size, VEDAstream stream) {
  veda_context& context = library().context_of(to);
  require(to != nullptr && from != nullptr, VEDA_ERROR_INVALID_VALUE);
  const std::uint64_t raw =
      usable(context, to, size,
             "a copy to a pointer without memory (its allocation failed late, or no kernel has "
             "allocated it): look at vedaMemPtr after vedaMemAllocAsync");
  auto record = profile_copy(VEDA_PROFILER_MEM_CPY_HTOD, context.device(), stream, to, from, size);
  context.enqueue(stream,
                  [=](Link& link) {
                    write(link, raw, from, size);
                    return Outcome{};
                  },
                  {false, nullptr, record});
}

void copy_to_host(void* to, VEDAdeviceptr from, std::size_t size, VEDAstream stream) {
  veda_context& context = library().context_of(from);
  require(to != nullptr && from != nullptr, VEDA_ERROR_INVALID_VALUE);
  const std::uint64_t raw = usable(context, from, size, "a copy from an uninitialized vptr");
  auto record = profile_copy(VEDA_PROFILER_MEM_CPY_DTOH, context.device(), stream, to, from, size);
  context.enqueue(stream,
                  [=](Link& link) {
                    read(link, raw, to, size);
                    return Outcome{};
                  },
                  {false, nullptr, record});
}

void copy_on_devices(VEDAdeviceptr to, VEDAdeviceptr from, std::size_t size, VEDAstream stream) {
  veda_context& context = library().context_of(to);
  veda_context& other = library().context_of(from);
  require(to != nullptr && from != nullptr, VEDA_ERROR_INVALID_VALUE);
  if (&context == &other) {
    context.enqueue(stream,
                    [=](Link& link) {
                      return Outcome{
                          VEDA_SUCCESS,
                          link.ask(Command::kCopy, {number(to), number(from), size}).status};
                    },
                    {true, nullptr, nullptr});
    return;
  }
  const auto buffer = std::make_shared<std::vector<char>>(size + 1);
  copy_to_host(buffer->data(), from, size, -1);
  const std::uint64_t raw = usable(context, to, size, "a copy to a pointer without memory");
  context.enqueue(stream, [=](Link& link) {
    write(link, raw, buffer->data(), size);
    return Outcome{};
  });
}

void fill_device(VEDAdeviceptr to, Pattern pattern, std::size_t pitch, std::size_t columns,
                 std::size_t rows, VEDAstream stream) {
  veda_context& context = library().context_of(to);
  const std::uint64_t checked = pitch == 0 ? 1 : 0;
  context.enqueue(stream,
                  [=](Link& link) {
                    const Reply reply =
                        link.ask(Command::kFill, {number(to), pattern.width, pattern.low,
                                                  pattern.high, columns, rows, pitch, checked});
                    return Outcome{VEDA_SUCCESS, reply.status};
                  },
                  {true, nullptr, nullptr});
}

void fill_hmem(VEDAhmemptr to, Pattern pattern, std::size_t pitch, std::size_t columns,
               std::size_t rows, VEDAstream stream) {
  veda_context& context = hmem_context(to);
  context.enqueue(stream, [=](Link& link) {
    link.ask(Command::kRawFill,
             {hmem_raw(to), pattern.width, pattern.low, pattern.high, columns, rows, pitch});
    return Outcome{};
  });
}

bool is_hmem(const void* pointer) { return (number(pointer) & kHmemFlag) != 0; }

std::uint64_t hmem_raw(const void* pointer) { return number(pointer) & kHmemAddress; }

veda_context& hmem_context(const void* pointer) {
  require(is_hmem(pointer), VEDA_ERROR_UNKNOWN_HMEM);
  const auto device = static_cast<int>(number(pointer) >> kHmemDeviceShift & 15);
  return *library().device(device).context;
}

VEDAhmemptr make_hmem(int device, std::uint64_t raw) {
  return reinterpret_cast<VEDAhmemptr>(kHmemFlag | std::uint64_t(device) << kHmemDeviceShift | raw);
}

void copy_hmem(void* to, const void* from, std::size_t size) {
  require(to != nullptr && from != nullptr, VEDA_ERROR_INVALID_VALUE);
  if (!is_hmem(to) && !is_hmem(from)) {
    std::memmove(to, from, size);
    return;
  }
  if (is_hmem(to) && is_hmem(from)) {
    std::vector<char> buffer(size + 1);
    copy_hmem(buffer.data(), from, size);
    copy_hmem(to, buffer.data(), size);
    return;
  }
  veda_context& context = hmem_context(is_hmem(to) ? to : from);
  context.session()->control([&](Link& link) {
    if (is_hmem(to)) {
      write(link, hmem_raw(to), from, size);
    } else {
      read(link, hmem_raw(from), to, size);
    }
  });
}

}  // namespace emulated
