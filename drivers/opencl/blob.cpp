// drivers/opencl/blob.cpp: what program_compile writes: a device's binary with a header around it.
#include "blob.h"

#include <cstring>

#include "graft/driver_slot.h"

namespace graft::opencl {
namespace {

struct Header {
  char magic[8];
  uint64_t identity;  // checksum of its text
  uint64_t bytes;     // of the binary
  uint64_t checksum;  // of the binary
};
constexpr char kMagic[8] = {'g', 'r', 'a', 'f', 't', 'c', 'l', '1'};

}  // namespace

// FNV-1a.
uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

void write_blob(std::string_view binary, const std::string& identity, graft_sink blob) {
  Header header = {{}, checksum(identity), binary.size(), checksum(binary)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  blob.write(blob.context, &header, sizeof header);
  blob.write(blob.context, binary.data(), binary.size());
}

graft_status read_blob(std::string_view blob, const std::string& identity,
                       std::string_view* out_binary) {
  Header header = {};
  if (blob.size() > sizeof header) std::memcpy(&header, blob.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0 ||
      header.bytes != blob.size() - sizeof header) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_load: not a whole blob of this driver");
  }
  if (header.identity != checksum(identity)) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "program_load: the blob was compiled for another device, driver or memory than " +
                    identity);
  }
  const std::string_view binary = blob.substr(sizeof header);
  if (checksum(binary) != header.checksum) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_load: the blob is damaged");
  }
  *out_binary = binary;
  return GRAFT_OK;
}

}  // namespace graft::opencl
