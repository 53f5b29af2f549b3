// tests/emulated/veda/ve/call.h: the call of a function of device code with arguments of any kind.
#ifndef GRAFT_TESTS_EMULATED_VEDA_VE_CALL_H_
#define GRAFT_TESTS_EMULATED_VEDA_VE_CALL_H_

#include <cstdint>
#include <span>

#include "tests/emulated/veda/protocol.h"

namespace emulated {

// Calls function with the arguments; of a buffer, buffers gives the address in their order.
// The arguments go where the C compiler of the host looks for them: integers and addresses in the
// integer registers, floats in their own, the rest of both on the stack in the order of the
// parameters. Returns the integer result, which means nothing for a function that has none.
std::uint64_t call(std::uint64_t function, std::span<const Argument> arguments,
                   std::span<void* const> buffers);

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_VE_CALL_H_
