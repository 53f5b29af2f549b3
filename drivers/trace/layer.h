// drivers/trace/layer.h: the layer in front of one driver.
#ifndef GRAFT_DRIVERS_TRACE_LAYER_H_
#define GRAFT_DRIVERS_TRACE_LAYER_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "call/faults.h"
#include "call/findings.h"
#include "call/log.h"
#include "call/result_file.h"
#include "call/sampling.h"
#include "objects/ledger.h"
#include "settings.h"
#include "tables.h"

namespace graft::trace {

// One for each driver of the process; lives as long as the process. Thread-safe where its members
// are; ledger is guarded by mutex, which is never held while the driver is called.
class TraceLayer {
 public:
  TraceLayer(const TraceSettings& given, const graft_driver_table& driver);

  // The driver's own slots; null where it has none.
  template <class Table>
  Table& behind() {
    return std::get<table_number<Table>()>(behind_);
  }
  const graft_driver_table& driver() const { return std::get<0>(behind_); }

  // The tables that the caller gets, with the layer's slots.
  template <class Table>
  Table& in_front() {
    return std::get<table_number<Table>()>(in_front_);
  }

  // The text of the calling thread's last failure, for last_message: null if it is the driver's.
  const std::string* last_text() const;
  void keep_text(std::string text) const;
  // Reads it from the driver.
  std::string driver_text() const;

  // Whether last_message cuts a text to a small capacity.
  bool cuts_texts() const;

  // The driver refused a call of this thread, and said text.
  void note_failure(const std::string& text);
  // The layer's own call failed since: the thread's text says nothing of the caller's.
  void forget_failure() const;
  // Whether the driver's text of this thread's last failure has become another thread's.
  bool has_foreign_text();

  // Prints the summary and ends the log, once.
  void finish();

  // Whether this process is a fork of the one that loaded the driver: the layer then only passes
  // calls on.
  static bool forked();

  const TraceSettings settings;
  const std::string name;
  FaultPlan faults;
  Sampling sampling;
  HeldErrors held;
  Findings findings;
  CallLog log;
  ResultFile results;
  std::mutex turn;  // of a serial run: held from a command's call to its end
  std::atomic<uint64_t> calls{0};

  std::mutex mutex;
  ObjectLedger ledger;

 private:
  void report_suspicions();

  struct Failure {
    uint64_t thread = 0;
    std::string text;
  };
  std::mutex failures_mutex_;
  std::vector<Failure> failures_;  // guarded by failures_mutex_: the latest
  std::atomic<uint64_t> failure_count_{0};

  AllTables behind_{}, in_front_{};
  std::atomic<bool> finished_{false};
};

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_LAYER_H_
