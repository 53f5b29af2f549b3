// tests/emulated/veda/protocol.h: what the library and the process of a device say to each other
// over a socket.
#ifndef GRAFT_TESTS_EMULATED_VEDA_PROTOCOL_H_
#define GRAFT_TESTS_EMULATED_VEDA_PROTOCOL_H_

#include <cstdint>

namespace emulated {

// The words of each command, and what the reply's value and second word give.
enum class Command : std::uint32_t {
  kAllocate,     // pointer, size: raw address, 0 if the memory is used up
  kAssign,       // pointer, raw address, size: memory that already exists gets a pointer
  kFree,         // pointer, may be absent
  kRelease,      // pointer: device code may free it
  kSwap,         // two pointers
  kInfo,         // pointer: raw address, size; both 0 until device code allocates it
  kWrite,        // raw address, and the payload
  kRead,         // raw address, size: the payload
  kCopy,         // to, from, size: pointers, checked here
  kFill,         // pointer, element bytes, low, high, columns, rows, pitch, 1 to check the bounds
  kRawAllocate,  // size: raw address
  kRawFree,      // raw address
  kRawCopy,      // to, from, size
  kRawFill,      // as kFill, with a raw address
  kLoad,         // the payload names a file: handle
  kUnload,       // handle
  kSymbol,       // handle, the payload is a name: raw address of the function
  kCall,         // function, number of Arguments; the payload has them, then their buffers
  kCrash,        // a planted exception
  kHang          // a planted kernel that never ends
};

struct Request {
  Command command;
  std::uint32_t unused;
  std::uint64_t words[8];
  std::uint64_t payload;  // bytes that follow
};

struct Reply {
  std::uint64_t status;  // a VEDAresult
  std::uint64_t value;
  std::uint64_t second;
  std::uint64_t payload;  // bytes that follow
};

enum class ArgumentKind : std::uint32_t { kInteger, kFloat, kBuffer };

// One argument of a call, in the order of the parameters.
struct Argument {
  ArgumentKind kind;
  std::uint32_t intent;  // of a buffer: a VEDAargs_intent
  std::uint64_t value;   // the bits; of a buffer, its size
};

constexpr int kMaxArguments = 48;
constexpr int kControlFile = 3;  // file descriptors in the device's process; streams follow

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_PROTOCOL_H_
