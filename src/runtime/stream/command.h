// src/runtime/stream/command.h: the kinds of commands that a stream takes.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "graft/extensions.h"
#include "runtime/driver/library.h"
#include "runtime/driver/op_tag.h"
#include "runtime/stream/command_trace.h"

namespace graft {

// The arguments of a launch, in the order of its kernel's parameters.
struct LaunchArguments {
  static constexpr int kDrawsNothing = -1;

  LaunchArguments() = default;
  // state: the place of the first of the three arguments that a generator's state takes (the key's
  // low and high half, the offset).
  template <class List>
  requires std::convertible_to<const List&, std::span<const graft_argument>> LaunchArguments(
      const List& list, int state = kDrawsNothing)
      : list(list), state(state) {}

  std::span<const graft_argument> list;
  int state = kDrawsNothing;
};

// Each kind below says of itself:
//   tag()            the op that it belongs to
//   slot()           the name of the slot that takes it
//   traced()         what a trace says
//   give()           calls the slot. REQUIRES: the stream's lock is held
//   count(counts)    adds it to figures
//   each_address(v)  calls v(uint64_t*, bool) for each device address, and whether the command
//                    writes there; v changes addresses of commands that are kept only
// and those that a list keeps (Command):
//   keep()           copies what it points to
//   fixed()          whether it does the same each time it is given, on the device alone, and
//                    graft.graphs takes it
//   describe()       as graft.graphs takes it, but for its tag and places. REQUIRES: kept
//   text()           for reading, in no stable form

struct CopyCommand {
  uint64_t to = 0, from = 0, bytes = 0;
  graft_copy_kind kind = GRAFT_DEVICE_TO_DEVICE;
  uint32_t op = current_tag();

  uint32_t& tag() { return op; }
  std::string_view slot() const { return "copy"; }
  TracedCall::What traced() const { return {TracedKind::kCopy, bytes, kind}; }
  graft_status give(const graft_driver_table& table, graft_stream stream) const {
    return Driver::call_locked(table.copy, stream, to, from, bytes, static_cast<uint32_t>(kind),
                               op);
  }
  void count(auto& counts) const { counts.add_copy(bytes); }
  void keep() {}
  bool fixed() const { return kind == GRAFT_DEVICE_TO_DEVICE; }
  void each_address(auto&& visit) {
    if (kind != GRAFT_DEVICE_TO_HOST) visit(&to, true);
    if (kind != GRAFT_HOST_TO_DEVICE) visit(&from, false);
  }
  void describe(graft_command* out) const { out->kind = GRAFT_COMMAND_COPY, out->bytes = bytes; }
  std::string text() const;
};

struct FillCommand {
  graft_address to = 0;
  uint64_t bytes = 0;
  const void* pattern = nullptr;
  uint32_t pattern_bytes = 0;  // at most 16
  uint32_t op = current_tag();
  std::unique_ptr<std::array<unsigned char, 16>> kept = nullptr;

  uint32_t& tag() { return op; }
  std::string_view slot() const { return "fill"; }
  TracedCall::What traced() const { return {TracedKind::kFill, bytes}; }
  graft_status give(const graft_driver_table& table, graft_stream stream) const {
    return Driver::call_locked(table.fill, stream, to, bytes, pattern, pattern_bytes, op);
  }
  void count(auto& counts) const { counts.add_fill(bytes); }
  void keep();
  bool fixed() const { return true; }
  void each_address(auto&& visit) { visit(&to, true); }
  void describe(graft_command* out) const {
    out->kind = GRAFT_COMMAND_FILL, out->bytes = bytes;
    out->pattern = pattern, out->pattern_bytes = pattern_bytes;
  }
  std::string text() const;
};

struct LaunchCommand {
  // In groups of `group` work-items.
  LaunchCommand(graft_kernel kernel, uint64_t grid, const LaunchArguments& arguments,
                uint32_t group = 1)
      : kernel(kernel),
        launch{sizeof(graft_launch),
               current_tag(),
               {grid, 1, 1},
               {group, 1, 1},
               static_cast<uint32_t>(arguments.list.size()),
               arguments.list.data()},
        state(arguments.state) {}

  graft_kernel kernel;
  graft_launch launch;
  int state;  // LaunchArguments::state
  std::unique_ptr<graft_argument[]> kept;

  uint32_t& tag() { return launch.tag; }
  std::string_view slot() const { return "kernel_launch"; }
  TracedCall::What traced() const {
    return {TracedKind::kLaunch, 0, GRAFT_DEVICE_TO_DEVICE, kernel};
  }
  graft_status give(const graft_driver_table& table, graft_stream stream) const {
    if (table.kernel_launch == nullptr) [[unlikely]]
      return GRAFT_UNSUPPORTED;
    return Driver::call_locked(table.kernel_launch, stream, kernel, &launch);
  }
  void count(auto& counts) const { counts.add_launch(); }
  void keep();
  bool fixed() const { return state == LaunchArguments::kDrawsNothing; }
  void each_address(auto&& visit) {
    auto* const all = const_cast<graft_argument*>(launch.arguments);
    for (graft_argument& one : std::span(all, launch.argument_count)) {
      if (one.kind != GRAFT_ARGUMENT_ADDRESS) continue;
      visit(&one.value, (one.access & GRAFT_ACCESS_WRITE) != 0);
    }
  }
  void describe(graft_command* out) const {
    out->kind = GRAFT_COMMAND_LAUNCH, out->kernel = kernel, out->launch = &launch;
  }
  std::string text() const;
};

// A call of a plan of graft.ops: a launch's arguments, but the vendor's kernel.
struct OperationCommand : LaunchCommand {
  using Execute = graft_status (*)(graft_stream, graft_plan, const graft_launch*);

  OperationCommand(Execute run, graft_plan plan, const char* name, const LaunchArguments& arguments,
                   std::shared_ptr<const void> owner)
      : LaunchCommand(nullptr, 1, arguments),
        run(run),
        plan(plan),
        name(name),
        owner(std::move(owner)) {}

  Execute run;
  graft_plan plan;
  const char* name;                   // of the operator, static
  std::shared_ptr<const void> owner;  // keeps the plan

  std::string_view slot() const { return "operation_execute"; }
  TracedCall::What traced() const { return {.name = name}; }
  graft_status give(const graft_driver_table&, graft_stream stream) const {
    return Driver::call_locked(run, stream, plan, &launch);
  }
  void describe(graft_command* out) const {
    out->kind = GRAFT_COMMAND_OPERATE, out->plan = plan, out->launch = &launch;
  }
  std::string text() const;
};

// A call of a plan of an extension's table.
struct LibraryCommand {
  graft_status (*run)(graft_stream, graft_plan, const graft_execution*) = nullptr;
  graft_plan plan = nullptr;
  graft_execution execution{};
  std::shared_ptr<const void> owner;  // keeps the plan
  uint32_t result = 2;                // which of the execution's tensors it writes

  uint32_t& tag() { return execution.tag; }
  std::string_view slot() const { return "plan_execute"; }
  TracedCall::What traced() const { return {}; }
  graft_status give(const graft_driver_table&, graft_stream stream) const {
    return Driver::call_locked(run, stream, plan, &execution);
  }
  void count(auto& counts) const { counts.add_launch(); }
  void keep() {}
  bool fixed() const { return true; }
  void each_address(auto&& visit) {
    for (graft_address& one : execution.tensors) visit(&one, &one == &execution.tensors[result]);
    for (graft_address& one : execution.operands) visit(&one, false);
    visit(&execution.workspace, true);
  }
  void describe(graft_command* out) const {
    out->kind = GRAFT_COMMAND_EXECUTE, out->plan = plan, out->execute = run;
  }
  std::string text() const;
};

// A run of an executable of graft.graph_compiler. No graph of graft.graphs holds one.
struct ExecutableCommand {
  graft_status (*run)(graft_stream, graft_executable, const graft_graph_run*) = nullptr;
  graft_executable executable = nullptr;
  graft_graph_run call{};
  std::shared_ptr<const void> owner;  // keeps the executable
  std::unique_ptr<uint64_t[]> kept = nullptr;

  uint32_t& tag() { return call.tag; }
  std::string_view slot() const { return "executable_run"; }
  TracedCall::What traced() const { return {}; }
  graft_status give(const graft_driver_table&, graft_stream stream) const {
    return Driver::call_locked(run, stream, executable, &call);
  }
  void count(auto& counts) const { counts.add_launch(); }
  void keep();
  bool fixed() const { return false; }
  void each_address(auto&& visit) {
    const auto each = [&](const graft_address* list, uint32_t count, bool written) {
      for (uint32_t i = 0; i < count; ++i) visit(const_cast<graft_address*>(list + i), written);
    };
    each(call.inputs, call.input_count, false);
    each(call.outputs, call.output_count, true);
    visit(&call.workspace, true);
  }
  void describe(graft_command*) const {}
  std::string text() const;
};

using Command = std::variant<CopyCommand, FillCommand, LaunchCommand, LibraryCommand,
                             OperationCommand, ExecutableCommand>;

// The launch of a command that has a launch's arguments; null of others.
inline LaunchCommand* launch_of(Command& command) {
  if (auto* launch = std::get_if<LaunchCommand>(&command)) return launch;
  return std::get_if<OperationCommand>(&command);
}

// Another slot that takes a stream, of the driver's table or an extension's. No list keeps it.
struct SlotCall {
  // What it does beside its call; nothing by default.
  struct Effects {
    TracedCall::What traced = {.on = false};
    graft_address written = 0;
    uint64_t copied = 0;          // bytes, of a copy
    const bool* taken = nullptr;  // whether the call did it; null: always
  };

  std::string_view what;
  void* context;
  graft_status (*call)(void* context, uint32_t tag);
  Effects effects;
  uint32_t op = current_tag();

  uint32_t& tag() { return op; }
  std::string_view slot() const { return what; }
  TracedCall::What traced() const { return effects.traced; }
  graft_status give(const graft_driver_table&, graft_stream) const { return call(context, op); }
  void count(auto& counts) const {
    const bool taken = effects.taken == nullptr || *effects.taken;
    if (effects.copied != 0 && taken) counts.add_copy(effects.copied);
  }
  void each_address(auto&& visit) {
    if (effects.written != 0) visit(&effects.written, true);
  }
};

}  // namespace graft
