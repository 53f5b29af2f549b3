// src/runtime/driver/device_name.cpp: what the device type is called in messages.
#include "runtime/driver/device_name.h"

namespace graft {
namespace {

std::string& type_name() {
  static auto* const name = new std::string("graft");
  return *name;
}

}  // namespace

const std::string& device_type_name() { return type_name(); }

void set_device_type_name(const std::string& name) { type_name() = name; }

std::string device_label(int index) {
  if (index >= kFirstCarriedIndex) return "ve:" + std::to_string(index - kFirstCarriedIndex);
  return type_name() + ":" + std::to_string(index);
}

}  // namespace graft
