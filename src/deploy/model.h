// src/deploy/model.h: a deployed model that is open on a device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/run/executor.h"
#include "deploy/artefact.h"
#include "deploy/call_form.h"
#include "deploy/calls/device_array.h"
#include "deploy/calls/order.h"
#include "deploy/calls/queue.h"
#include "deploy/calls/results.h"
#include "deploy/model_host.h"
#include "deploy/staging.h"
#include "runtime/driver/export.h"
#include "runtime/platform/device.h"

namespace graft::deploy {

// An input of a call, in host memory with any strides, or on the model's device.
struct CallInput {
  TensorView host;
  const DeviceArray* device = nullptr;  // borrowed for the call; host means nothing then

  const TensorView& view() const { return device == nullptr ? host : device->view(); }
};

// Weights that calls write, a cache say, and those that the file lets programs set are the model's
// state: it begins as the file has it, and lasts as long as the model, which keeps its first values
// in host memory. Thread-safe: calls take
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

  const std::vector<Described>& inputs() const { return form_.inputs; }
  const std::vector<Described>& outputs() const { return form_.outputs; }
  const std::string& result() const { return result_; }  // Manifest::result

  // inputs: in host memory, any strides, unchanged during the call. Waits for the results. Throws
  // Error INVALID_ARGUMENT, naming input, what it is and what the model takes; what the device
  // throws. The model stays usable; its state may be that between two calls, or partly written.
  std::vector<HostResult> run(std::span<const TensorView> inputs);

  // Queues a call behind what the queue has so far, and its end before what comes later. Inputs
  // are read during the call if they are in host memory; those of the device may go back at once,
  // and are not written before the call is done. Throws as run does, but for what fails later,
  // which the queue and the results report. May wait where sizes are new.
  std::unique_ptr<QueuedResults> enqueue(Queue& queue, std::span<const CallInput> inputs);

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
  Model(const Artefact& artefact, compiler::Graph graph, Device& device);
  void load(const Artefact& artefact, const compiler::Graph& graph);
  void prepare(compiler::Graph graph);
  void check(std::span<const CallInput> inputs) const;
  compiler::ExecutionInput staged(size_t argument, const CallInput& input);
  std::vector<TensorView> queue_graph(std::span<const CallInput> inputs);
  std::vector<DeviceArray> kept(std::span<const TensorView> results);
  void forget();
  // If the work throws, what it queued is done and gone. REQUIRES: the turn is held.
  template <class Work>
  auto in_turn(Work&& work) -> decltype(work());
  // Takes the turn, behind all queued calls.
  template <class Work>
  auto alone(Work&& work) -> decltype(work());

  struct Placed {  // a tensor of the file on the device
    TensorView view;
    std::shared_ptr<char[]> elements;  // as the file has them; of the state
  };
  Placed place(const Artefact& artefact, const std::string& name, const compiler::GraphValue& value,
               const compiler::Graph& graph, bool kept);

  struct Source {  // of an input of the graph
    bool argument = false;
    size_t index = 0;  // of the argument
    TensorView weight;
  };

  Device& device_;
  Stream& stream_;
  std::string result_;
  const CallForm form_;
  std::vector<Described> state_;
  std::map<std::string, TensorView> constants_;
  std::map<std::string, HeldBlock> weights_;
  std::vector<HeldBlock> prepared_;

  const std::shared_ptr<CallOrder> order_;  // whose turn guards what follows
  ModelHost host_;
  std::vector<Source> sources_;  // by input of the graph that runs
  uint32_t tag_ = 0;             // of late errors
  std::unique_ptr<compiler::Executor> executor_;
  std::vector<Placed> states_;        // by state_; never moves
  std::vector<HeldBlock> arguments_;  // of a call
  Staging staging_;
};

}  // namespace graft::deploy
