// tests/drivers/check/session.h: a driver opened for one case, with the checks that cases are
// written in.
#ifndef GRAFT_TESTS_DRIVERS_CHECK_SESSION_H_
#define GRAFT_TESTS_DRIVERS_CHECK_SESSION_H_

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "graft/driver.h"
#include "graft/driver_table.h"

namespace graft::check {

// What a case throws when the driver broke the contract; what() is the row's message.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a case throws when the driver does not offer what it is about; what() says what is missing.
class Omitted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The name of a status, for messages: "GRAFT_OK".
const char* status_name(graft_status status);

// A loaded driver with device 0 open. Lives in the case's own process, which is why it never
// unloads the library. Not thread-safe, but its table may be called from threads.
class Session {
 public:
  // Loads the library and fills the table. Throws Failure when that does not work. trace: settings
  // of the trace layer, which is then in front of the table; "": none.
  explicit Session(const std::string& path, const std::string& trace = "");

  // Opens device 0 and reads its properties. Throws Failure.
  void open();

  // Throws Failure unless got is want; what names the call: "copy of 3 bytes".
  void expect(graft_status got, graft_status want, const std::string& what) const;

  // Throws Failure with text unless condition holds.
  static void require(bool condition, const std::string& text);

  // The driver's table of an extension. Throws Omitted if the driver lacks it.
  const void* find_extension(const TableFacts& facts) const;
  template <class Table>
  const Table& extension() const {
    return *static_cast<const Table*>(find_extension(table_facts<Table>));
  }

  // A new stream of normal priority; the process owns it until it ends.
  graft_stream stream() const;

  // A new event; timed as in event_create.
  graft_event event(bool timed = false) const;

  // bytes of device memory. Throws Failure when there is none.
  graft_address allocate(uint64_t bytes) const;

  // Copies bytes to the device and waits.
  void upload(graft_stream stream, graft_address to, const std::vector<uint8_t>& bytes) const;

  // Copies count bytes from the device and waits.
  std::vector<uint8_t> download(graft_stream stream, graft_address from, uint64_t count) const;

  // Holds the stream back for about milliseconds: by host_callback where the driver has it, else
  // by enough copies of big memory. What is queued next finds the stream busy.
  void delay(graft_stream stream, int milliseconds) const;

  graft_driver_query_function query = nullptr;  // for cases that ask for other tables
  graft_driver_table table{};
  graft_device device = nullptr;
  graft_device_properties properties{};

 private:
  std::string last_message() const;
};

// count bytes that differ from their neighbours and from one seed to the next.
std::vector<uint8_t> pattern(uint64_t count, uint8_t seed);

}  // namespace graft::check

#endif  // GRAFT_TESTS_DRIVERS_CHECK_SESSION_H_
