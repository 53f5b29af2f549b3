// drivers/veda/program/kernel.cpp: launches kernels.
#include "program/kernel.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graft/driver_slot.h"
#include "memory.h"
#include "stream.h"

namespace graft::veda {
namespace {

// What VEDA passes to a device's function in one launch.
constexpr uint64_t kMostBytes = uint64_t{64} << 20;
constexpr uint64_t kUnwritten = ~uint64_t{0};

class Launch final : public Work {
 public:
  Launch(graft_kernel kernel, uint64_t grid, std::vector<graft_kernel_argument> arguments)
      : kernel_(kernel), grid_(grid), arguments_(std::move(arguments)) {}

  Called issue(VEDAstream stream) override {
    VEDAargs args = nullptr;
    Called called = GRAFT_VEDA_CALL(ArgsCreate, &args);
    if (!called.ok()) return called;
    const uint64_t cores = kernel_->device->listed.properties.compute_units;
    called = GRAFT_VEDA_CALL(ArgsSetU64, args, 0, kernel_->function);
    if (called.ok()) called = GRAFT_VEDA_CALL(ArgsSetU64, args, 1, grid_);
    if (called.ok()) called = GRAFT_VEDA_CALL(ArgsSetU64, args, 2, cores);
    if (called.ok()) {
      called = GRAFT_VEDA_CALL(ArgsSetStack, args, 3, arguments_.data(), VEDA_ARGS_INTENT_IN,
                               arguments_.size() * sizeof arguments_[0]);
    }
    if (called.ok()) {
      called = GRAFT_VEDA_CALL(LaunchKernelEx, kernel_->entry, stream, args, 0, &result_);
    }
    // VEDA keeps a pointer to them until the launch is done.
    if (called.ok()) {
      args_ = args;
    } else {
      veda().ArgsDestroy(args);
    }
    return called;
  }
  std::string text() const override { return "the kernel " + kernel_->name; }
  bool has_ended() const override { return result_ != kUnwritten; }

  ~Launch() override {
    if (args_ != nullptr) veda().ArgsDestroy(args_);
  }

 private:
  const graft_kernel kernel_;
  const uint64_t grid_;
  std::vector<graft_kernel_argument> arguments_;
  VEDAargs args_ = nullptr;
  uint64_t result_ = kUnwritten;  // VEDA writes it when it waits
};

graft_status check(graft_stream stream, graft_kernel kernel, const graft_launch* launch) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (kernel == nullptr || launch == nullptr ||
      (launch->argument_count != 0 && launch->arguments == nullptr)) {
    return fail(GRAFT_INVALID_ARGUMENT, "kernel_launch: kernel, launch or arguments missing");
  }
  if (kernel->device != stream->device) {
    return fail(GRAFT_INVALID_ARGUMENT, "kernel_launch: the kernel " + kernel->name +
                                            " was loaded on another device than the stream");
  }
  if (launch->grid[1] > 1 || launch->grid[2] > 1 || launch->group[0] > 1 || launch->group[1] > 1 ||
      launch->group[2] > 1) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "kernel_launch: this device takes grid {n, 1, 1} and group {1, 1, 1} only");
  }
  if (launch->argument_count > kMostBytes / sizeof(graft_kernel_argument)) {
    return fail(GRAFT_INVALID_ARGUMENT, "kernel_launch: " + std::to_string(launch->argument_count) +
                                            " arguments are more than the 64 MB that VEDA passes");
  }
  return GRAFT_OK;
}

graft_status translate(graft_device device, const graft_argument& from, const std::string& which,
                       graft_kernel_argument* to) {
  to->bits = from.value;
  if (from.kind == GRAFT_ARGUMENT_SCALAR) return GRAFT_OK;
  if (from.kind != GRAFT_ARGUMENT_ADDRESS) {
    return fail(GRAFT_INVALID_ARGUMENT, which + " is neither a scalar nor an address");
  }
  if (from.value == 0 || device->memory.find(from.value, 0)) return GRAFT_OK;
  return fail(GRAFT_INVALID_ARGUMENT, which + ", " + std::to_string(from.value) +
                                          ", is not an address of the device's memory");
}

}  // namespace

graft_status KernelSlots::kernel_launch(graft_stream stream, graft_kernel kernel,
                                        const graft_launch* launch) {
  if (graft_status status = check(stream, kernel, launch); status != GRAFT_OK) return status;
  // VEDA takes no empty buffer.
  std::vector<graft_kernel_argument> arguments(std::max<size_t>(launch->argument_count, 1));
  for (uint32_t i = 0; i < launch->argument_count; ++i) {
    const graft_status status = translate(
        stream->device, launch->arguments[i],
        "kernel_launch: argument " + std::to_string(i) + " of " + kernel->name, &arguments[i]);
    if (status != GRAFT_OK) return status;
  }
  if (launch->grid[0] == 0) return GRAFT_OK;
  auto work = std::make_unique<Launch>(kernel, launch->grid[0], std::move(arguments));
  work->tag = launch->tag;
  stream->queue.push(std::move(work));
  return GRAFT_OK;
}

}  // namespace graft::veda
