// src/codegen/cache/source_dump.h: the kernels of a process as text, for people and for other
// compilers.
#pragma once

#include <string>

#include "codegen/ir/ir.h"

namespace graft {

// With GRAFT_DUMP_KERNELS=folder, writes the kernel to folder/<dialect>/<key>.c in every dialect
// that can say it, whatever the device's own is; folders are made. Nothing when the variable is not
// set.
// A file that cannot be written is reported once on stderr and the process goes on. Any thread.
void dump_sources(const std::string& key, const ir::Kernel& kernel);

}  // namespace graft
