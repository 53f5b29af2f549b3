// src/torch/ve/naming.cpp: errors of the device behind the slot, told of the slot's device.
#include "torch/ve/naming.h"

#include <cctype>

namespace graft::binding::ve {
namespace {

template <class Kind>
void throw_if(const c10::Error& error, const std::string& text) {
  if (dynamic_cast<const Kind*>(&error) != nullptr) throw Kind(text, error.backtrace());
}

template <class... Kinds>
void throw_one_of(const c10::Error& error, const std::string& text) {
  (throw_if<Kinds>(error, text), ...);
}

// Each name that no further digit follows: graft:1 is not the begin of graft:12.
void replace(std::string& text, const std::string& name, const std::string& other) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
    const size_t end = at + name.size();
    if (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) {
      at = end;
      continue;
    }
    text.replace(at, name.size(), other);
    at += other.size();
  }
}

}  // namespace

std::string renamed(std::string text, c10::ArrayRef<c10::Device> devices) {
  for (const c10::Device device : devices) replace(text, inner(device).str(), device.str());
  replace(text, "torch." + device_name() + ".", "torch.ve.");
  return text;
}

void throw_renamed(const c10::Error& error, c10::ArrayRef<c10::Device> devices) {
  const std::string text = renamed(error.what_without_backtrace(), devices);
  if (const auto* failed = dynamic_cast<const c10::AcceleratorError*>(&error)) {
    const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
    throw c10::AcceleratorError(here, failed->get_error_code(), text);
  }
  throw_one_of<c10::OutOfMemoryError, c10::IndexError, c10::ValueError, c10::TypeError,
               c10::NotImplementedError, c10::BufferError, c10::LinAlgError>(error, text);
  throw c10::Error(text, error.backtrace());
}

}  // namespace graft::binding::ve
