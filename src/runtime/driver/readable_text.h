// src/runtime/driver/readable_text.h: makes text of a driver fit to be shown.
#pragma once

#include <string>
#include <string_view>

#include "runtime/driver/export.h"

namespace graft {

// The text with '?' for each byte that belongs to no UTF-8 character and for each control character
// but a tab or a new line. Python refuses other text, and an error would be lost with its words.
GRAFT_EXPORT std::string readable(std::string_view text);

}  // namespace graft
