// drivers/opencl/blob.h: what program_compile writes: a device's binary with a header around it.
#ifndef GRAFT_DRIVERS_OPENCL_BLOB_H_
#define GRAFT_DRIVERS_OPENCL_BLOB_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "graft/driver.h"

namespace graft::opencl {

// Of the same bytes always the same; finds damage, is no protection.
uint64_t checksum(std::string_view bytes);

// Writes binary as a blob for what is called identity.
void write_blob(std::string_view binary, const std::string& identity, graft_sink blob);

// Finds the binary in a blob; INVALID_ARGUMENT, with a message, for one that is damaged or another
// device's. *out_binary points into blob.
graft_status read_blob(std::string_view blob, const std::string& identity,
                       std::string_view* out_binary);

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_BLOB_H_
