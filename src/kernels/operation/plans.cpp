// src/kernels/operation/plans.cpp: plans of a vendor's own kernels, by what they are for.
#include "kernels/operation/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

enum class Known : uint8_t { kNotAsked, kYes, kNo };

// A call as it was asked for: its operator and counts, and the words of its key.
struct Asked {
  std::array<uint32_t, 6> head;
  std::vector<uint64_t> words;

  Asked(const std::array<uint32_t, 6>& head, const OperationKey& key)
      : head(head), words(key.words, key.words + key.size) {}
  bool is(const std::array<uint32_t, 6>& other, const OperationKey& key) const {
    return head == other && std::equal(words.begin(), words.end(), key.words, key.words + key.size);
  }
};

// Calls that the vendor does not take, up to a number: any thread looks without a lock, since none
// leaves.
class Refusals {
 public:
  bool has(const std::array<uint32_t, 6>& head, const OperationKey& key) const {
    const size_t first = place_of(head, key);
    for (size_t i = 0; i < kProbes; ++i) {
      const Asked* const one = slots_[(first + i) % kSlots].load(std::memory_order_acquire);
      if (one == nullptr) return false;
      if (one->is(head, key)) return true;
    }
    return false;
  }
  // False where there is no room. REQUIRES: no other thread adds.
  bool add(const std::array<uint32_t, 6>& head, const OperationKey& key) {
    const size_t first = place_of(head, key);
    for (size_t i = 0; i < kProbes; ++i) {
      std::atomic<const Asked*>& slot = slots_[(first + i) % kSlots];
      if (slot.load(std::memory_order_relaxed) != nullptr) continue;
      slot.store(&kept_.emplace_back(head, key), std::memory_order_release);
      return true;
    }
    return false;
  }

 private:
  // Cheap: every call of what is refused pays it. Four sums side by side do not wait for each
  // other.
  static size_t place_of(const std::array<uint32_t, 6>& head, const OperationKey& key) {
    std::array<uint64_t, 4> sums = {head[0], key.scalars, 0, 0};
    uint32_t i = 0;
    for (; i + 4 <= key.size; i += 4) {
      for (uint32_t k = 0; k < 4; ++k) sums[k] = std::rotl(sums[k], 23) ^ key.words[i + k];
    }
    for (; i < key.size; ++i) sums[i % 4] = std::rotl(sums[i % 4], 23) ^ key.words[i];
    return (sums[0] * 0x9e3779b97f4a7c15u + sums[1] * 0xc2b2ae3d27d4eb4fu +
            sums[2] * 0x165667b19e3779f9u + sums[3] * 0xd6e8feb86659fd93u) >>
           52;
  }

  static constexpr size_t kSlots = 4096, kProbes = 8;
  std::array<std::atomic<const Asked*>, kSlots> slots_{};
  std::deque<Asked> kept_;  // what is in it stays where it is
};

struct Entry {
  Asked asked;
  std::shared_ptr<const OperationPlan> plan;  // null: refused, and no room in Refusals
};
using Generation = std::unordered_map<uint64_t, Entry>;

// Of one device, for as long as the process lives: plans must not outlive their driver's statics.
struct Operations {
  explicit Operations(size_t count) : known(count) {}

  std::vector<std::atomic<Known>> known;
  Refusals refusals;  // added to under mutex
  std::mutex mutex;
  Generation young, old;  // guarded by mutex; what is used of the old one becomes young
};
constexpr size_t kGeneration = 2048;

Operations& operations_of(OpenDevice& device) {
  static thread_local constinit std::pair<const OpenDevice*, Operations*> last;
  if (last.first == &device) return *last.second;
  static std::mutex mutex;
  static auto& all = *new std::map<const OpenDevice*, std::unique_ptr<Operations>>();
  const std::lock_guard lock(mutex);
  auto& found = all[&device];
  if (found == nullptr) found = std::make_unique<Operations>(vocabulary().size());
  last = {&device, found.get()};
  return *found;
}

std::array<uint32_t, 6> head_of(OperationId id, const OperationKey& key) {
  return {id.at, key.written, key.tensors, key.integers, key.numbers, key.scalars};
}

uint64_t hash_of(const std::array<uint32_t, 6>& head, const OperationKey& key) {
  uint64_t mixed = 0;
  const auto mix = [&](uint64_t word) {
    mixed = (mixed ^ word) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 29;
  };
  for (const uint32_t number : head) mix(number);
  for (uint32_t i = 0; i < key.size; ++i) mix(key.words[i]);
  return mixed;
}

// What a driver reads, made from a key.
struct Description {
  std::vector<graft_tensor> tensors;
  std::vector<uint32_t> dtypes;
  std::vector<double> numbers;
  graft_operation operation{};

  Description(const char* name, const OperationKey& key) {
    const uint64_t* next = key.words;
    for (uint32_t i = 0; i < key.tensors; ++i) {
      graft_tensor& tensor = tensors.emplace_back(graft_tensor{});
      tensor.dtype = static_cast<uint32_t>(*next), tensor.rank = static_cast<uint32_t>(*next >> 32);
      ++next;
      for (uint32_t d = 0; d < tensor.rank; ++d) tensor.sizes[d] = static_cast<int64_t>(*next++);
      for (uint32_t d = 0; d < tensor.rank; ++d) tensor.strides[d] = static_cast<int64_t>(*next++);
    }
    const auto* integers = reinterpret_cast<const int64_t*>(next);
    next += key.integers;
    numbers.resize(key.numbers);
    if (key.numbers != 0) std::memcpy(numbers.data(), next, key.numbers * sizeof(double));
    next += key.numbers;
    for (uint32_t i = 0; i < key.scalars; ++i) dtypes.push_back(static_cast<uint32_t>(*next++));
    operation = {sizeof(operation), GRAFT_MATH_STRICT, name,          key.tensors,
                 key.scalars,       key.integers,      key.numbers,   tensors.data(),
                 dtypes.data(),     integers,          numbers.data()};
  }

  std::string text() const {
    std::string text = operation.name;
    for (const graft_tensor& tensor : tensors) {
      if (tensor.dtype == GRAFT_NO_TENSOR) {
        text += " none";
        continue;
      }
      text += fmt::format(" {}[{}]", name_of(static_cast<graft_dtype>(tensor.dtype)),
                          fmt::join(tensor.sizes, tensor.sizes + tensor.rank, ", "));
    }
    return text;
  }
};

bool fits(const std::vector<Signature::Word>& words, size_t count) {
  const auto repeated = std::ranges::count_if(words, &Signature::Word::repeated);
  const size_t fixed = words.size() - static_cast<size_t>(repeated);
  return repeated == 0 ? count == fixed : count >= fixed;
}

// So that the table says what drivers get: a call that differs is an error of Graft's.
void check(const Signature& signature, const OperationKey& key, const Description& made) {
  const uint32_t read = key.tensors - key.written;
  bool right = fits(signature.written, key.written) && fits(signature.read, read) &&
               fits(signature.integers, key.integers) && fits(signature.numbers, key.numbers) &&
               fits(signature.scalars, key.scalars);
  for (uint32_t i = 0; i < key.tensors && right; ++i) {
    const auto& words = i < key.written ? signature.written : signature.read;
    const size_t at = i < key.written ? i : i - key.written;
    const bool optional = at < words.size() && words[at].optional;
    right = made.tensors[i].dtype != GRAFT_NO_TENSOR || optional;
  }
  if (right) return;
  throw Error(GRAFT_INTERNAL,
              fmt::format("{}: a call with {} written and {} read tensors, {} integers, {} numbers "
                          "and {} scalars is not what docs/drivers/operations.md says; report it",
                          made.text(), key.written, read, key.integers, key.numbers, key.scalars));
}

std::shared_ptr<const OperationPlan> make(OpenDevice& device, OperationId id,
                                          const OperationKey& key) {
  const Signature& signature = vocabulary()[id.at];
  const Description made(signature.name.c_str(), key);
  check(signature, key, made);
  auto plan = std::make_shared<OperationPlan>();
  for (size_t i = 0; i < signature.written.size(); ++i) {
    if (signature.written[i].updated) plan->updated |= uint64_t{1} << i;
  }
  graft_plan_needs needs{sizeof(needs), 0, 0};
  graft_plan got = nullptr;
  const graft_ops_table& table = *device.operations();
  const graft_status status =
      Driver::call(table.operation_plan, device.handle(), &made.operation, &needs, &got);
  if (status == GRAFT_UNSUPPORTED) return nullptr;
  if (status == GRAFT_OK && got == nullptr) {
    throw Error(GRAFT_INTERNAL, fmt::format("{}: operation_plan returned OK but no plan for {}",
                                            device.label(), made.text()));
  }
  if (status == GRAFT_DEVICE_LOST) device.check(status, "operation_plan");
  if (status != GRAFT_OK) {
    throw Error(status == GRAFT_COMPILE_ERROR ? GRAFT_INTERNAL : status,
                fmt::format("{}: operation_plan failed for {}: {}: {}", device.label(), made.text(),
                            status_name(status), device.driver().message(status)));
  }
  plan->plan = got;
  plan->workspace_bytes = needs.workspace_bytes;
  plan->destroy = table.plan_destroy;
  return plan;
}

}  // namespace

OperationPlan::~OperationPlan() {
  if (plan != nullptr && destroy != nullptr) Driver::call(destroy, plan);
}

bool vendor_knows(OpenDevice& device, OperationId id) {
  std::atomic<Known>& known = operations_of(device).known[id.at];
  const Known now = known.load(std::memory_order_relaxed);
  if (now != Known::kNotAsked) return now == Known::kYes;
  const graft_status status = Driver::call(device.operations()->operation_known, device.handle(),
                                           vocabulary()[id.at].name.c_str());
  if (status != GRAFT_OK && status != GRAFT_UNSUPPORTED) device.check(status, "operation_known");
  known.store(status == GRAFT_OK ? Known::kYes : Known::kNo, std::memory_order_relaxed);
  return status == GRAFT_OK;
}

std::shared_ptr<const OperationPlan> operation_plan(OpenDevice& device, OperationId id,
                                                    const OperationKey& key) {
  Operations& all = operations_of(device);
  const std::array<uint32_t, 6> head = head_of(id, key);
  if (all.refusals.has(head, key)) return nullptr;
  const uint64_t hash = hash_of(head, key);
  const std::lock_guard lock(all.mutex);
  if (all.refusals.has(head, key)) return nullptr;  // another thread asked meanwhile
  const auto found = all.young.find(hash);
  if (found != all.young.end() && found->second.asked.is(head, key)) return found->second.plan;
  if (all.young.size() >= kGeneration) {
    all.old = std::move(all.young);
    all.young.clear();
  }
  const auto before = all.old.find(hash);
  const bool kept = before != all.old.end() && before->second.asked.is(head, key);
  std::shared_ptr<const OperationPlan> plan = kept ? before->second.plan : make(device, id, key);
  if (plan == nullptr && all.refusals.add(head, key)) return plan;
  all.young.insert_or_assign(hash, Entry{{head, key}, plan});
  return plan;
}

int known_operations(OpenDevice& device) {
  int known = 0;
  if (device.operations() == nullptr) return known;
  for (const Op& row : op_table()) known += vendor_knows(device, row) ? 1 : 0;
  for (uint16_t i = 0; i < kOperators; ++i) {
    known += vendor_knows(device, static_cast<Operation>(i)) ? 1 : 0;
  }
  return known;
}

}  // namespace graft
