// tests/emulated/veda/ve/call.cpp: the call of a function of device code with arguments of any
// kind.
#include "tests/emulated/veda/ve/call.h"

#include <bit>
#include <cstddef>
#include <utility>

namespace emulated {
namespace {

#if defined(__aarch64__)
constexpr std::size_t kIntegers = 8;
#else
constexpr std::size_t kIntegers = 6;  // x86-64 System V
#endif
constexpr std::size_t kFloats = 8;

struct Registers {
  std::uint64_t integers[kIntegers] = {};
  double floats[kFloats] = {};
  std::uint64_t stack[kMaxArguments] = {};
};

Registers placed(std::span<const Argument> arguments, std::span<void* const> buffers) {
  Registers registers;
  std::size_t integers = 0;
  std::size_t floats = 0;
  std::size_t stacked = 0;
  std::size_t buffer = 0;
  for (const Argument& argument : arguments) {
    const std::uint64_t bits = argument.kind == ArgumentKind::kBuffer
                                   ? reinterpret_cast<std::uint64_t>(buffers[buffer++])
                                   : argument.value;
    if (argument.kind == ArgumentKind::kFloat && floats < kFloats) {
      registers.floats[floats++] = std::bit_cast<double>(bits);
    } else if (argument.kind != ArgumentKind::kFloat && integers < kIntegers) {
      registers.integers[integers++] = bits;
    } else {
      registers.stack[stacked++] = bits;
    }
  }
  return registers;
}

template <std::size_t>
using Word = std::uint64_t;
template <std::size_t>
using Real = double;

// A function of this type reads each register class and the stack, whatever the order.
template <std::size_t... I, std::size_t... F, std::size_t... S>
__attribute__((no_sanitize("undefined"))) std::uint64_t call_placed(std::uint64_t function,
                                                                    const Registers& registers,
                                                                    std::index_sequence<I...>,
                                                                    std::index_sequence<F...>,
                                                                    std::index_sequence<S...>) {
  using Function = std::uint64_t (*)(Word<I>..., Real<F>..., Word<S>...);
  return reinterpret_cast<Function>(function)(registers.integers[I]..., registers.floats[F]...,
                                              registers.stack[S]...);
}

}  // namespace

std::uint64_t call(std::uint64_t function, std::span<const Argument> arguments,
                   std::span<void* const> buffers) {
  return call_placed(function, placed(arguments, buffers), std::make_index_sequence<kIntegers>(),
                     std::make_index_sequence<kFloats>(),
                     std::make_index_sequence<kMaxArguments>());
}

}  // namespace emulated
