// tests/deploy/fuzz/opening.h: what is done with the bytes of a file, whatever they are.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/analysis/verifier.h"
#include "compiler/graph/text.h"
#include "deploy/model.h"
#include "runtime/driver/error.h"
#include "tests/deploy/fuzz/accepting_driver.h"
#include "tests/deploy/fuzz/beside.h"

namespace graft::deploy::test {

// A file in memory that a link names, in the folder of the files beside it. One at a time.
class BytesFile {
 public:
  explicit BytesFile(std::string_view bytes)
      : file_(memfd_create("artefact", MFD_CLOEXEC)), path_(beside_folder().file(kModelFile)) {
    const std::string memory = "/proc/self/fd/" + std::to_string(file_);
    if (file_ < 0 || write(file_, bytes.data(), bytes.size()) != ssize_t(bytes.size()) ||
        symlink(memory.c_str(), path_.c_str()) != 0) {
      throw std::runtime_error("the bytes do not fit into memory");
    }
  }
  ~BytesFile() {
    unlink(path_.c_str());
    close(file_);
  }
  BytesFile(const BytesFile&) = delete;
  BytesFile& operator=(const BytesFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  int file_;
  const std::string path_;
};

enum class Opened {
  kRefused,  // with a named error
  kRead,     // the file is whole, its graph means something
  kRan       // a device ran it
};

// A text that was read prints as one that reads as the same.
inline void check_text(const std::string& text) {
  const compiler::Graph graph = compiler::parse(text);
  compiler::verify(graph);
  const std::string once = compiler::print(graph);
  if (compiler::print(compiler::parse(once)) != once) {
    throw std::logic_error("a printed graph reads as another one: " + once);
  }
}

// Writes back what it keeps between calls, then makes it what the file has.
inline void use_state(Model* model) {
  const std::vector<HostResult> state = model->read_state();
  for (size_t i = 0; i < state.size(); ++i) model->write_state(i, state[i].view);
  model->reset();
}

// A call that does not wait, whose results the host asks for.
inline void enqueue(Model* model, const std::vector<TensorView>& inputs) {
  Queue queue(accepting_device());
  std::vector<CallInput> given;
  for (const TensorView& one : inputs) given.push_back({one});
  const auto results = model->enqueue(queue, given);
  for (size_t i = 0; i < results->size(); ++i) results->on_host(i);
  queue.synchronize();
}

// On zeros of typical sizes; false where these are more than a megabyte.
inline bool run_on_zeros(Model* model) {
  std::vector<std::vector<char>> memory;
  std::vector<TensorView> inputs;
  for (const Described& one : model->inputs()) {
    TensorView view;
    view.dtype = one.dtype, view.rank = static_cast<int>(one.hints.size());
    uint64_t bytes = 16;
    for (size_t d = one.hints.size(); d-- > 0;) {
      view.sizes[d] = one.hints[d];
      view.strides[d] = d + 1 == one.hints.size() ? 1 : view.strides[d + 1] * view.sizes[d + 1];
      if (one.hints[d] < 0 || one.hints[d] > 1 << 20) return false;
      if ((bytes *= std::max<uint64_t>(one.hints[d], 1)) > 1 << 20) return false;
    }
    memory.emplace_back(bytes);
    view.address = reinterpret_cast<graft_address>(memory.back().data());
    inputs.push_back(view);
  }
  model->run(inputs);
  enqueue(model, inputs);
  return true;
}

// Reads everything in the file, then runs its model. Throws what a reader must not: anything but
// Error and std::bad_alloc.
inline Opened open_all(std::string_view bytes) {
  const BytesFile file(bytes);
  Opened opened = Opened::kRefused;
  try {
    const Artefact artefact(file.path());
    for (const std::string& name : artefact.manifest().tensors()) {
      const StoredTensor& weight = artefact.weight(name);
      std::vector<char> to(weight.bytes + 1);
      artefact.read(weight, to.data());
    }
    artefact.blobs();
    check_text(artefact.manifest().graph);
    opened = Opened::kRead;
    Model model(artefact, accepting_device());
    if (run_on_zeros(&model)) opened = Opened::kRan;
    use_state(&model);
  } catch (const Error& error) {
    const bool named = error.status() != GRAFT_OK && error.status() != GRAFT_INTERNAL;
    if (!named || std::string_view(error.what()).empty()) {
      throw std::logic_error(std::string("an error without a name: ") + error.what());
    }
  } catch (const std::bad_alloc&) {
    return opened;
  }
  return opened;
}

}  // namespace graft::deploy::test
