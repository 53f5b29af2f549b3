// drivers/trace/call/arguments.h: arguments of any slot: shown, and watched where the slot writes
// them.
#ifndef GRAFT_DRIVERS_TRACE_CALL_ARGUMENTS_H_
#define GRAFT_DRIVERS_TRACE_CALL_ARGUMENTS_H_

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "call/call.h"

namespace graft::trace {

// The names in "(graft_stream stream, uint64_t to)".
std::vector<std::string> names_of(const char* parameters);

std::string shown(uint64_t value);
std::string shown(int64_t value);
std::string shown_pointer(const void* pointer);
std::string shown_text(const char* text);
std::string shown_launch(const graft_launch* launch);

template <class T>
std::string show(const T& value) {
  if constexpr (std::is_same_v<T, const char*>) {
    return shown_text(value);
  } else if constexpr (std::is_same_v<T, const graft_launch*>) {
    return shown_launch(value);
  } else if constexpr (std::is_pointer_v<T> && std::is_function_v<std::remove_pointer_t<T>>) {
    return shown_pointer(reinterpret_cast<const void*>(value));
  } else if constexpr (std::is_pointer_v<T>) {
    return shown_pointer(value);
  } else if constexpr (std::is_signed_v<T>) {
    return shown(static_cast<int64_t>(value));
  } else if constexpr (std::is_integral_v<T>) {
    return shown(static_cast<uint64_t>(value));
  } else {
    return "...";
  }
}

// Whether a slot writes one value through a parameter of this type. char and uint8_t are arrays.
template <class T>
constexpr bool is_result() {
  if constexpr (!std::is_pointer_v<T>) {
    return false;
  } else {
    using Value = std::remove_pointer_t<T>;
    constexpr bool number = std::is_arithmetic_v<Value> && !std::is_same_v<Value, char> &&
                            !std::is_same_v<Value, uint8_t>;
    return !std::is_const_v<Value> && (number || std::is_pointer_v<Value>);
  }
}

// What the driver gets in an argument's place.
template <class T, bool result = is_result<T>()>
struct LentArgument {
  explicit LentArgument(T given) : given_(given) {}
  T lend() { return given_; }
  void settle(TraceCall&, graft_status) {}

 private:
  T given_;
};

// A result: the driver writes a value of the layer's, which shows whether it did.
template <class T>
struct LentArgument<T, true> {
  using Value = std::remove_pointer_t<T>;

  explicit LentArgument(T given) : given_(given) { std::memset(&value_, kUntouched, kBytes); }
  T lend() { return given_ == nullptr ? nullptr : &value_; }

  void settle(TraceCall& call, graft_status status) {
    if (given_ == nullptr) return;
    Value untouched;
    std::memset(&untouched, kUntouched, kBytes);
    const bool touched = std::memcmp(&untouched, &value_, kBytes) != 0;
    if (touched || status == GRAFT_OK) {
      if (touched != (status == GRAFT_OK) && call.layer.settings.rules) report(call, touched);
    }
    if (touched) *given_ = value_;
  }

 private:
  static constexpr int kUntouched = 0x5a;
  static constexpr size_t kBytes = sizeof(std::array<Value, 1>);

  static void report(TraceCall& call, bool touched) {
    if (touched) {
      call.driver_broke("touched-result", "failed and wrote a result",
                        "Write out_ parameters only if the slot returns OK.");
    } else {
      call.driver_broke("no-result", "OK without a result", "Write every out_ parameter.");
    }
  }

  T given_;
  Value value_;
};

// The tag of the command that a call queues, 0 if its arguments have none.
template <class T>
uint32_t tag_in(const T& value) {
  if constexpr (std::is_same_v<T, const graft_launch*> ||
                std::is_same_v<T, const graft_execution*> ||
                std::is_same_v<T, const graft_graph_run*>) {
    return value->tag;
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    return value;
  } else {
    return 0;
  }
}

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_CALL_ARGUMENTS_H_
