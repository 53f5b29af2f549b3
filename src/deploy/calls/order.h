// src/deploy/calls/order.h: the order of a model's calls, and calls that may not be done.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "deploy/staging.h"
#include "runtime/driver/error.h"
#include "runtime/stream/event.h"
#include "runtime/stream/stream.h"

namespace graft::deploy {

class QueuedCall;

// Later commands of one stream run after those that the other has by now. Both are of one device.
void follow(Stream& later, Stream& earlier);

// Calls of one model take turns on its stream. The stream reports a failure once, for all of its
// commands: each call that may not be done then keeps it. Outlives the model with its calls.
class CallOrder {
 public:
  CallOrder(Stream& stream, std::string model) : stream_(stream), model_(std::move(model)) {}

  Stream& stream() const { return stream_; }
  const std::string& model() const { return model_; }  // as messages name it

  // Who gives the stream commands, or waits for it, holds this. All below REQUIRE it.
  std::mutex& turn() { return turn_; }

  void add(std::shared_ptr<QueuedCall> call) { calls_.push_back(std::move(call)); }

  // Waits for all calls. Throws where the wait ends early, not what failed.
  void finish();
  // False if the stream has commands left; never blocks.
  bool try_finish();

  // Does what queues commands. If it throws after it queued some, it may have waited, and its
  // error may be one of earlier calls: these keep it.
  template <class Work>
  void queue(Work&& work) {
    const CommandCounts before = stream_.counts();
    try {
      work();
    } catch (const Error& error) {
      if (queued_since(before)) fail(error);
      throw;
    }
  }

  // Takes the late error that nobody has read; earlier calls keep it.
  void take_late() noexcept;

 private:
  bool queued_since(const CommandCounts& before) const;
  void fail(const Error& error);
  void end();  // of all calls

  Stream& stream_;
  const std::string model_;
  std::mutex turn_;
  std::vector<std::shared_ptr<QueuedCall>> calls_;  // that may not be done
};

// Thread-safe. Outlives its model.
class QueuedCall {
 public:
  explicit QueuedCall(std::shared_ptr<CallOrder> order)
      : order_(std::move(order)), done_(order_->stream().device(), false) {}

  // Marks the end of the call, whose commands the stream has, and takes the memory that they read.
  // REQUIRES: the turn is held.
  void end(Staging* staging);

  Event& done() { return done_; }

  // Waits for the call, and for others that its model has by then. Throws where the wait ends
  // early. The second throws also what failed, each time.
  void finish();
  void wait();

  // What failed, none before the call is done; whether it is done and nothing failed. Never blocks
  // for long.
  std::optional<Error> failure() const;
  bool succeeded() const;

  // False while commands of its model are left, which may be of later calls. Never blocks; throws
  // nothing that failed.
  bool query();

  // Copies a tensor that the call wrote to the host and waits. Throws what wait and Staging throw.
  HostResult download(const TensorView& tensor);

 private:
  friend class CallOrder;
  bool finished() const;
  void fail(const Error& error);

  const std::shared_ptr<CallOrder> order_;
  Event done_;
  Staging::Memory memory_;    // guarded by the order's turn
  mutable std::mutex mutex_;  // guards what follows
  bool finished_ = false;
  std::optional<Error> failure_;
};

}  // namespace graft::deploy
