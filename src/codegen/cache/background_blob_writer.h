// src/codegen/cache/background_blob_writer.h: blobs that drivers make after their programs, while
// the process goes on.
#pragma once

#include <string>

#include "graft/extensions.h"
#include "runtime/driver/open_device.h"

namespace graft {

// Has the device's driver save the program, which lives as long as the process, on a thread of this
// file, and keeps the blob in blob_store() under name. What fails is not kept: the next process
// compiles again. Platform::shutdown waits, with the line of compile_progress.h, until all are kept
// or interrupted; a process that exits without it may crash in a compiler whose globals are gone.
// Any thread.
void keep_later(OpenDevice& device, const graft_programs_table& table, graft_program program,
                std::string name);

}  // namespace graft
