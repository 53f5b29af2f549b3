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

std::string CopyCommand::text() const {
  return "copy of " + std::to_string(bytes) + " bytes " + kind_text(kind);
}
std::string FillCommand::text() const { return "fill of " + std::to_string(bytes) + " bytes"; }
std::string LaunchCommand::text() const {
  return "launch over " + std::to_string(launch.grid[0]) + " items";
}
std::string OperationCommand::text() const { return std::string("operation ") + name; }
std::string LibraryCommand::text() const { return "plan_execute"; }

}  // namespace graft
