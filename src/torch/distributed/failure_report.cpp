// src/torch/distributed/failure_report.cpp: finds out which ranks of a group are gone, through the
// group's store.
#include "torch/distributed/failure_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <thread>
#include <utility>

#include "torch/distributed/task_queue.h"

namespace graft::binding {
namespace {

const std::string kFailure = "graft/failure";
constexpr std::chrono::milliseconds kLook(20);
constexpr std::chrono::milliseconds kSilence(1000);  // what an answer of the store may take

std::string answer_of(int rank) { return "graft/answer/" + std::to_string(rank); }

}  // namespace

FailureReport::FailureReport(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                             std::vector<uint64_t> global_ranks)
    : store_(std::move(store)), rank_(rank), size_(size), global_ranks_(std::move(global_ranks)) {}

// A thread of its own: where the network is cut, a store neither answers nor fails.
std::shared_future<FailureReport::Found> FailureReport::in_background(
    std::function<Found(FailureReport&)> ask) {
  auto answer = std::make_shared<std::promise<Found>>();
  std::shared_future<Found> future = answer->get_future().share();
  run_in_background([self = shared_from_this(), ask = std::move(ask), answer] {
    try {
      answer->set_value(ask(*self));
    } catch (...) {
      answer->set_exception(std::current_exception());
    }
  });
  return future;
}

FailureReport::Found FailureReport::look() {
  if (!store_->check({kFailure})) return std::nullopt;
  store_->set(answer_of(rank_), std::string("waits"));
  return store_->get_to_str(kFailure);
}

// Where the store is silent, the wire's own timeout counts.
std::optional<std::string> FailureReport::failure() noexcept {
  try {
    std::shared_future<Found> looking;
    {
      const std::lock_guard lock(mutex_);
      if (!looking_.valid()) looking_ = in_background(&FailureReport::look);
      looking = looking_;
    }
    if (looking.wait_for(kSilence) != std::future_status::ready) return std::nullopt;
    {
      const std::lock_guard lock(mutex_);
      looking_ = {};
    }
    return looking.get();
  } catch (const std::exception& error) {
    return std::string("the group's store does not answer: ") + error.what();
  }
}

std::string FailureReport::keep(std::string text) {
  const std::lock_guard lock(mutex_);
  if (!reported_) reported_ = std::move(text);
  return *reported_;
}

std::string FailureReport::report(const std::string& what,
                                  std::chrono::milliseconds patience) noexcept {
  try {
    if (const auto before = reported()) return *before;
    const auto called =
        in_background([what, patience](FailureReport& self) { return self.call(what, patience); });
    if (called.wait_for(patience + kSilence) == std::future_status::ready) {
      return keep(*called.get());
    }
    return keep(name(rank_) + ": " + what +
                " (and the group's store is silent: the network between this machine and the one "
                "of torchrun, or else of rank 0, is cut)");
  } catch (const std::exception& error) {
    return keep(name(rank_) + ": " + what +
                " (and the group's store does not answer, so the process that serves it is gone: "
                "torchrun, or else rank 0; " +
                error.what() + ")");
  }
}

std::optional<std::string> FailureReport::reported() const {
  const std::lock_guard lock(mutex_);
  return reported_;
}

std::string FailureReport::call(const std::string& what, std::chrono::milliseconds patience) {
  const std::string mine = fmt::format("{}: {}", name(rank_), what);
  store_->set(answer_of(rank_), std::string("failed"));
  std::string first = mine;
  if (store_->check({kFailure})) {
    first = store_->get_to_str(kFailure);
  } else {
    store_->set(kFailure, mine);
  }
  std::string text = mine;
  if (first != mine) text += "; reported first by " + first;
  if (patience.count() == 0) return text;
  const std::vector<int> missing = silent(patience);
  if (missing.empty()) return text;
  return fmt::format("{}; {} did not answer within {} ms: ended, hanging or far behind", text,
                     names(missing), patience.count());
}

std::vector<int> FailureReport::silent(std::chrono::milliseconds patience) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) ranks.push_back(rank);
  }
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    std::vector<int> left;
    try {
      for (const int rank : ranks) {
        if (!store_->check({answer_of(rank)})) left.push_back(rank);
      }
    } catch (const std::exception&) {
      return ranks;  // who held the store has read the answers, and has ended
    }
    ranks = std::move(left);
    if (ranks.empty() || std::chrono::steady_clock::now() >= deadline) return ranks;
    std::this_thread::sleep_for(kLook);
  }
}

std::string FailureReport::names(const std::vector<int>& ranks) const {
  std::vector<std::string> all;
  for (const int rank : ranks) all.push_back(name(rank));
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string FailureReport::name(int rank) const {
  const auto index = static_cast<size_t>(rank);
  return fmt::format("rank {}", index < global_ranks_.size() ? global_ranks_[index] : index);
}

}  // namespace graft::binding
