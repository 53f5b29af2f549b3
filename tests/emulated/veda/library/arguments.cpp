// tests/emulated/veda/library/arguments.cpp: the arguments of a kernel, from vedaArgsSet to the
// device.
#include "tests/emulated/veda/library/arguments.h"

#include <cstring>

#include "tests/emulated/veda/library/devices.h"
#include "tests/emulated/veda/library/entry.h"

namespace emulated {

std::uint64_t buffer_bytes(const std::vector<HostArgument>& arguments) {
  std::uint64_t sum = 0;
  for (const HostArgument& argument : arguments) {
    if (argument.wire.kind == ArgumentKind::kBuffer) sum += argument.wire.value;
  }
  return sum;
}

std::uint64_t call_device(Link& link, std::uint64_t function,
                          const std::vector<HostArgument>& arguments) {
  std::vector<Argument> wires;
  for (const HostArgument& argument : arguments) wires.push_back(argument.wire);
  const auto is_buffer = [](const HostArgument& argument, VEDAargs_intent but) {
    return argument.wire.kind == ArgumentKind::kBuffer && argument.wire.intent != but;
  };
  link.begin(Command::kCall, {function, wires.size()}, buffer_bytes(arguments));
  link.send(wires.data(), wires.size() * sizeof(Argument));
  for (const HostArgument& argument : arguments) {
    if (is_buffer(argument, VEDA_ARGS_INTENT_OUT)) link.send(argument.buffer, argument.wire.value);
  }
  const Reply reply = link.finish();
  for (const HostArgument& argument : arguments) {
    if (is_buffer(argument, VEDA_ARGS_INTENT_IN)) {
      link.receive(argument.buffer, argument.wire.value);
    }
  }
  return reply.value;
}

namespace {

void set_bits(VEDAargs args, int index, std::uint64_t bits,
              ArgumentKind kind = ArgumentKind::kInteger) {
  require(args != nullptr, VEDA_ERROR_INVALID_ARGS);
  args->set(index, {{kind, 0, bits}, nullptr});
}

// As VEO extends it: a signed one by its sign, an unsigned one by zeros.
template <class Value>
VEDAresult set_integer(const char* name, VEDAargs args, int index, Value value) {
  return entry(name, [&] { set_bits(args, index, static_cast<std::uint64_t>(value)); });
}

template <class Value>
VEDAresult set_real(const char* name, VEDAargs args, int index, Value value) {
  return entry(name, [&] {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    set_bits(args, index, bits, ArgumentKind::kFloat);
  });
}

}  // namespace
}  // namespace emulated

void veo_args::set(int index, emulated::HostArgument argument) {
  emulated::require(index >= 0 && index < emulated::kMaxArguments, VEDA_ERROR_INVALID_ARGS);
  const std::lock_guard lock(mutex_);
  if (static_cast<std::size_t>(index) >= arguments_.size()) arguments_.resize(index + 1);
  arguments_[index] = argument;
}

std::vector<emulated::HostArgument> veo_args::list() {
  const std::lock_guard lock(mutex_);
  return arguments_;
}

std::shared_ptr<void> veo_args::begin_launch() {
  ++*launches_;
  return {nullptr, [launches = launches_](void*) { --*launches; }};
}

using emulated::entry;
using emulated::require;
using emulated::set_integer;
using emulated::set_real;

VEDAresult vedaArgsCreate(VEDAargs* args) {
  return entry("ArgsCreate", [&] {
    require(args != nullptr, VEDA_ERROR_INVALID_ARGS);
    *args = new veo_args;
  });
}

VEDAresult vedaArgsDestroy(VEDAargs args) {
  return entry("ArgsDestroy", [&] {
    require(args != nullptr, VEDA_ERROR_INVALID_ARGS);
    if (args->in_use()) {
      emulated::end_process(
          "vedaArgsDestroy of arguments whose launch has not ended: wait first, or give "
          "vedaLaunchKernelEx destroyArgs = 1");
    }
    delete args;
  });
}

#define EMULATED_VEDA_SET(suffix, type, set)                                         \
  VEDAresult vedaArgsSet##suffix(VEDAargs args, const int index, const type value) { \
    return set("ArgsSet" #suffix, args, index, value);                               \
  }
EMULATED_VEDA_SET(I8, int8_t, set_integer)
EMULATED_VEDA_SET(I16, int16_t, set_integer)
EMULATED_VEDA_SET(I32, int32_t, set_integer)
EMULATED_VEDA_SET(I64, int64_t, set_integer)
EMULATED_VEDA_SET(U8, uint8_t, set_integer)
EMULATED_VEDA_SET(U16, uint16_t, set_integer)
EMULATED_VEDA_SET(U32, uint32_t, set_integer)
EMULATED_VEDA_SET(U64, uint64_t, set_integer)
EMULATED_VEDA_SET(F32, float, set_real)
EMULATED_VEDA_SET(F64, double, set_real)
#undef EMULATED_VEDA_SET

VEDAresult vedaArgsSetVPtr(VEDAargs args, const int index, const VEDAdeviceptr value) {
  return set_integer("ArgsSetVPtr", args, index, reinterpret_cast<std::uint64_t>(value));
}

VEDAresult vedaArgsSetPtr(VEDAargs args, const int index, const VEDAdeviceptr value) {
  return entry("ArgsSetPtr", [&] {
    const auto found = emulated::library().context_of(value).resolve(value);
    const std::uint64_t raw = found->raw;
    emulated::set_bits(args, index, raw == 0 ? 0 : raw + VEDA_GET_OFFSET(value));
  });
}

VEDAresult vedaArgsSetHMEM(VEDAargs args, const int index, const VEDAhmemptr value) {
  return set_integer("ArgsSetHMEM", args, index, reinterpret_cast<std::uint64_t>(value));
}

VEDAresult vedaArgsSetStack(VEDAargs args, const int index, void* pointer, VEDAargs_intent intent,
                            const size_t size) {
  return entry("ArgsSetStack", [&] {
    require(args != nullptr && pointer != nullptr, VEDA_ERROR_INVALID_ARGS);
    const bool known = intent == VEDA_ARGS_INTENT_IN || intent == VEDA_ARGS_INTENT_INOUT ||
                       intent == VEDA_ARGS_INTENT_OUT;
    require(known, VEDA_ERROR_INVALID_VALUE);
    args->set(index, {{emulated::ArgumentKind::kBuffer, intent, size}, pointer});
  });
}
