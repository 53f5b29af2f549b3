// src/torch/distributed/native_engine.cpp: collectives by the driver's own library, on streams of
// the device.
#include "torch/distributed/native_engine.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <utility>

#include "runtime/driver/dtype.h"
#include "runtime/driver/fork.h"
#include "runtime/driver/open_device.h"
#include "torch/device/current.h"
#include "torch/device/type.h"
#include "torch/tensor/memory.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

// The library names who is missing, and ranks that wait for their device would not answer.
constexpr std::chrono::milliseconds kAtOnce(0);

graft_reduction reduction_of(c10d::ReduceOp::RedOpType op) {
  switch (op) {
    case c10d::ReduceOp::PRODUCT:
      return GRAFT_REDUCE_PRODUCT;
    case c10d::ReduceOp::MIN:
      return GRAFT_REDUCE_MIN;
    case c10d::ReduceOp::MAX:
      return GRAFT_REDUCE_MAX;
    case c10d::ReduceOp::BAND:
      return GRAFT_REDUCE_BIT_AND;
    case c10d::ReduceOp::BOR:
      return GRAFT_REDUCE_BIT_OR;
    case c10d::ReduceOp::BXOR:
      return GRAFT_REDUCE_BIT_XOR;
    default:
      return GRAFT_REDUCE_SUM;
  }
}

// Whether the i-th regions of all spans lie one after the other.
bool consecutive(const std::vector<Span>& spans, size_t i) {
  const Region& first = spans[0][i];
  for (size_t rank = 0; rank < spans.size(); ++rank) {
    if (spans[rank][i].address != first.address + rank * first.bytes) return false;
  }
  return true;
}

// Memory of the stream for the i-th regions of all spans, one after the other. REQUIRES: the stream
// is current.
at::Tensor room_for(const std::vector<Span>& spans, size_t i, const OpenDevice& device) {
  const auto bytes = static_cast<int64_t>(spans.size() * spans[0][i].bytes);
  const auto index = static_cast<c10::DeviceIndex>(device.index());
  return at::empty({bytes}, at::TensorOptions().dtype(at::kByte).device(device_of(index)));
}

void copy(Stream& stream, graft_address to, graft_address from, uint64_t bytes) {
  if (bytes > 0 && to != from) stream.copy(to, from, bytes, GRAFT_DEVICE_TO_DEVICE);
}

}  // namespace

NativeEngine::NativeEngine(Stream& lane, std::unique_ptr<CollectiveGroup> group,
                           std::shared_ptr<FailureReport> roll_call)
    : group_(std::move(group)), roll_call_(std::move(roll_call)), lane_(lane) {}

NativeEngine::~NativeEngine() {
  if (roll_call_->reported()) group_->abort();  // or it waits for ranks that are gone
}

void NativeEngine::run(const Exchange& exchange, std::shared_ptr<Event> ready,
                       const c10::intrusive_ptr<CollectiveWork>& work) {
  if (const auto text = roll_call_->reported()) {
    told();
    C10_THROW_ERROR(DistBackendError,
                    "the process group is broken since an earlier failure: " + *text);
  }
  Stream& caller = current_stream(static_cast<c10::DeviceIndex>(device().index()));
  Stream& stream = exchange.asynchronous ? lane_ : caller;
  if (&stream != &caller) {
    stream.wait(*ready);
    for (const at::Tensor& tensor : work->kept()) {
      record_stream(tensor.storage().data_ptr(), stream);
    }
  }
  enqueue(stream, exchange, *work);
  if (&stream == &caller) return work->complete(stream);
  stream.concerns().add(this, [weak = weak_from_this()] {
    const auto self = weak.lock();
    return self != nullptr && self->ask();
  });
  work->when_told([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->told();
  });
  work->complete(stream);
  watch(work);
}

void NativeEngine::enqueue(Stream& stream, const Exchange& exchange, CollectiveWork& work) {
  if (exchange.kind == Collective::kAllGather) return gather(stream, exchange, work);
  if (exchange.kind == Collective::kReduceScatter) return reduce_scatter(stream, exchange, work);
  if (exchange.kind == Collective::kGather || exchange.kind == Collective::kScatter ||
      exchange.kind == Collective::kAllToAll) {
    return enqueue_moves(stream, exchange);
  }
  const graft_dtype dtype = to_graft(exchange.dtype);
  const graft_reduction reduction = reduction_of(exchange.reduction);
  const auto root = static_cast<uint32_t>(exchange.root);
  for (const Region& region : exchange.send[0]) {
    const uint64_t count = region.bytes / size_of(dtype);
    if (count == 0) continue;
    const graft_address at = region.address;
    if (exchange.kind == Collective::kAllReduce) {
      group_->all_reduce(stream, at, at, count, dtype, reduction);
    } else if (exchange.kind == Collective::kReduce) {
      group_->reduce(stream, at, at, count, dtype, reduction, root);
    } else {
      group_->broadcast(stream, at, at, count, dtype, root);
    }
  }
}

void NativeEngine::gather(Stream& stream, const Exchange& exchange, CollectiveWork& work) {
  const StreamScope scope(stream);
  for (size_t i = 0; i < exchange.send[0].size(); ++i) {
    const Region& mine = exchange.send[0][i];
    if (mine.bytes == 0) continue;
    const bool direct = consecutive(exchange.receive, i);
    const at::Tensor room = direct ? at::Tensor() : room_for(exchange.receive, i, device());
    const graft_address to = direct ? exchange.receive[0][i].address : address_of(room);
    group_->all_gather(stream, mine.address, to, mine.bytes, GRAFT_UINT8);
    if (direct) continue;
    for (size_t rank = 0; rank < exchange.receive.size(); ++rank) {
      copy(stream, exchange.receive[rank][i].address, to + rank * mine.bytes, mine.bytes);
    }
    work.keep(room);
  }
}

void NativeEngine::reduce_scatter(Stream& stream, const Exchange& exchange, CollectiveWork& work) {
  const StreamScope scope(stream);
  const graft_dtype dtype = to_graft(exchange.dtype);
  for (size_t i = 0; i < exchange.receive[0].size(); ++i) {
    const Region& mine = exchange.receive[0][i];
    if (mine.bytes == 0) continue;
    const bool direct = consecutive(exchange.send, i);
    const at::Tensor room = direct ? at::Tensor() : room_for(exchange.send, i, device());
    const graft_address from = direct ? exchange.send[0][i].address : address_of(room);
    for (size_t rank = 0; !direct && rank < exchange.send.size(); ++rank) {
      copy(stream, from + rank * mine.bytes, exchange.send[rank][i].address, mine.bytes);
    }
    group_->reduce_scatter(stream, from, mine.address, mine.bytes / size_of(dtype), dtype,
                           reduction_of(exchange.reduction));
    if (!direct) work.keep(room);
  }
}

// Gathers, scatters and all_to_all: between each two ranks at most one region each way.
void NativeEngine::enqueue_moves(Stream& stream, const Exchange& exchange) {
  const uint32_t rank = group_->rank();
  const auto root = static_cast<uint32_t>(exchange.root);
  const bool to_root = exchange.kind == Collective::kGather;
  const bool from_root = exchange.kind == Collective::kScatter;
  group_->batch([&] {
    for (uint32_t peer = 0; peer < group_->size(); ++peer) {
      const bool sends = (!to_root || peer == root) && (!from_root || rank == root);
      const bool receives = (!to_root || rank == root) && (!from_root || peer == root);
      const Region* out = sends ? &exchange.send[to_root ? 0 : peer][0] : nullptr;
      const Region* in = receives ? &exchange.receive[from_root ? 0 : peer][0] : nullptr;
      if (peer == rank) continue;
      if (out && out->bytes) group_->send(stream, out->address, out->bytes, GRAFT_UINT8, peer);
      if (in && in->bytes) group_->receive(stream, in->address, in->bytes, GRAFT_UINT8, peer);
    }
  });
  const bool mine = (!to_root && !from_root) || rank == root;
  if (!mine) return;
  const Region& out = exchange.send[to_root ? 0 : rank][0];
  copy(stream, exchange.receive[from_root ? 0 : rank][0].address, out.address, out.bytes);
}

// Waiting streams do not see the engine's late errors, so each checks the engine after every wait.
void NativeEngine::watch(const c10::intrusive_ptr<CollectiveWork>& work) {
  {
    const std::lock_guard lock(judging_);
    watching_.push_back(work);
  }
  watched_->add([self = shared_from_this(), work] {
    work->settle();
    Works judged;
    const std::lock_guard lock(self->judging_);
    judged = self->judge_settled();
  });
}

// Those that are done now, for the caller to drop without the lock: with their tensors, which
// Python may own. All are settled before one is judged: another thread that waits for a later one
// may be bringing the stream the error of an earlier. REQUIRES: judging_ is held.
NativeEngine::Works NativeEngine::judge_settled() {
  Works judged;
  while (!watching_.empty() && watching_.front()->settled()) {
    judged.push_back(std::move(watching_.front()));
    watching_.pop_front();
    judged.back()->settle();
  }
  for (const auto& work : judged) judge(*work);
  return judged;
}

// The stream hands its first error out once; after it every command of the group fails.
void NativeEngine::judge(CollectiveWork& work) {
  std::optional<std::string> text = roll_call_->reported();
  if (const std::optional<Error> error = lane_.take_late()) {
    text = roll_call_->report(std::string(work.title()) + " failed: " + error->what(), kAtOnce);
    untold_ = text;
  }
  if (text) work.fail_late(std::make_exception_ptr(C10_BUILD_ERROR(DistBackendError, *text)));
}

// What streams ask after a wait. True: ask again, there is more under way.
bool NativeEngine::ask() {
  Works judged;
  const std::lock_guard lock(judging_);
  judged = judge_settled();
  if (const auto text = std::exchange(untold_, std::nullopt)) throw Error(GRAFT_TIMEOUT, *text);
  return !watching_.empty();
}

void NativeEngine::told() {
  const std::lock_guard lock(judging_);
  untold_.reset();
}

void NativeEngine::finish() {
  if (forked_child() || !device().usable()) return;
  c10::intrusive_ptr<CollectiveWork> last;
  {
    const std::lock_guard lock(judging_);
    if (!watching_.empty()) last = watching_.back();
  }
  if (last) last->settle();
  ask();
}

}  // namespace graft::binding
