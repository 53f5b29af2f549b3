// src/runtime/stream/command.cpp: the kinds of commands that a stream takes.
#include "runtime/stream/command.h"

#include <algorithm>
#include <cstring>

namespace graft {
namespace {

const char* kind_text(graft_copy_kind kind) {
  if (kind == GRAFT_HOST_TO_DEVICE) return "from the host";
  return kind == GRAFT_DEVICE_TO_HOST ? "to the host" : "on the device";
}

}  // namespace

void FillCommand::keep() {
  kept = std::make_unique<std::array<unsigned char, 16>>();
  std::memcpy(kept->data(), pattern, std::min<size_t>(pattern_bytes, kept->size()));
  pattern = kept->data();
}

void LaunchCommand::keep() {
  kept = std::make_unique<graft_argument[]>(launch.argument_count);
  std::copy_n(launch.arguments, launch.argument_count, kept.get());
  launch.arguments = kept.get();
}

void ExecutableCommand::keep() {
  kept = std::make_unique<uint64_t[]>(size_t{call.input_count} + call.output_count +
                                      call.symbol_count);
  uint64_t* const outputs = std::copy_n(call.inputs, call.input_count, kept.get());
  uint64_t* const symbols = std::copy_n(call.outputs, call.output_count, outputs);
  std::copy_n(call.symbols, call.symbol_count, symbols);
  call.inputs = kept.get(), call.outputs = outputs;
  call.symbols = reinterpret_cast<const int64_t*>(symbols);
}

std::string CopyCommand::text() const {
  return "copy of " + std::to_string(bytes) + " bytes " + kind_text(kind);
}
std::string FillCommand::text() const { return "fill of " + std::to_string(bytes) + " bytes"; }
std::string LaunchCommand::text() const {
  return "launch over " + std::to_string(launch.grid[0]) + " items";
}
std::string OperationCommand::text() const { return std::string("operation ") + name; }
std::string LibraryCommand::text() const { return "plan_execute"; }
std::string ExecutableCommand::text() const { return "executable_run"; }

}  // namespace graft
