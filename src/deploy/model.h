// src/deploy/model.h: a deployed model that is open on a device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "compiler/run/executor.h"
#include "deploy/artefact.h"
#include "deploy/model_host.h"
#include "deploy/staging.h"
#include "runtime/driver/export.h"
#include "runtime/platform/device.h"

namespace graft::deploy {

// What the model takes or gives. A size below 0 varies from call to call.
struct Described {
  std::string name;
  graft_dtype dtype = GRAFT_FLOAT32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> hints;  // typical sizes
};

// Weights that calls write, a cache say, are the model's state: it begins as the file has it, and
// lasts as long as the model, which keeps its first values in host memory. Thread-safe: calls take
// turns on a stream of the model's own.
class GRAFT_EXPORT Model {
 public:
  // Copies the weights to the device, compiles the graph for it and prepares weights as far as they
  // depend on nothing else. Throws Error: what Artefact::read throws; UNSUPPORTED, naming operator
  // and line, for what the device does not run; OUT_OF_MEMORY.
  Model(const Artefact& artefact, Device& device);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const std::vector<Described>& inputs() const { return inputs_; }
  const std::vector<Described>& outputs() const { return outputs_; }
  const std::string& result() const { return result_; }  // Manifest::result

  // inputs: in host memory, any strides, unchanged during the call. Waits for the results. Throws
  // Error INVALID_ARGUMENT, naming input, what it is and what the model takes; what the device
  // throws. The model stays usable; its state may be that between two calls, or partly written.
  std::vector<HostResult> run(std::span<const TensorView> inputs);

  // What the state is, and its values now. Throws what the device throws.
  const std::vector<Described>& state() const { return state_; }
  std::vector<HostResult> read_state();

  // Writes one tensor of the state. value: in host memory, any strides, unchanged during the call.
  // Throws Error NOT_FOUND, INVALID_ARGUMENT as run does, and what the device throws.
  void write_state(size_t index, const TensorView& value);

  // Writes what the file has to all of the state. Throws what the device throws.
  void reset();

  // Random numbers of later calls are those of a generator with this seed; 0 at first.
  void seed(uint64_t seed);

 private:
  void describe(const compiler::Graph& graph, const Manifest& manifest);
  void load(const Artefact& artefact, const compiler::Graph& graph);
  void prepare(compiler::Graph graph);
  void check(std::span<const TensorView> inputs) const;
  compiler::ExecutionInput staged(size_t argument, const TensorView& given);
  void forget();
  template <class Work>
  auto alone(Work&& work) -> decltype(work());  // if it throws, what it queued is done and gone

  struct Placed {  // a tensor of the file on the device
    TensorView view;
    std::shared_ptr<char[]> elements;  // as the file has them; of what the model writes
  };
  Placed place(const Artefact& artefact, const std::string& name, const compiler::GraphValue& value,
               const compiler::Graph& graph);

  struct Source {  // of an input of the graph
    bool argument = false;
    size_t index = 0;  // of the argument
    TensorView weight;
  };

  Device& device_;
  Stream& stream_;
  std::string result_;
  std::vector<Described> inputs_, outputs_, state_;
  std::vector<Manifest::Integer> integers_;
  std::map<std::string, TensorView> constants_;
  std::map<std::string, HeldBlock> weights_;
  std::vector<HeldBlock> prepared_;

  std::mutex mutex_;  // guards what follows
  ModelHost host_;
  std::vector<Source> sources_;  // by input of the graph that runs
  uint32_t tag_ = 0;             // of late errors
  std::vector<bool> numbers_;    // by argument: read at the call, in host memory
  std::unique_ptr<compiler::Executor> executor_;
  std::vector<Placed> states_;        // by state_; never moves
  std::vector<HeldBlock> arguments_;  // of a call
  Staging staging_;
};

}  // namespace graft::deploy
