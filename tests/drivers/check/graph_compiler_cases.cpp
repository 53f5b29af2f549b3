// tests/drivers/check/graph_compiler_cases.cpp: a vendor's compiler of graphs.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "check/cases.h"
#include "graft/extensions.h"

using graft::check::Omitted;
using graft::check::Session;

namespace {

constexpr char kText[] =
    "graft-graph 1\n"
    "graph check\n"
    "symbol s0 range 1..64 hint 4 from integer 0\n"
    "input %x: float32[s0, 3] activation\n"
    "input %w: float32[3] parameter\n"
    "node %sum: float32[s0, 3] = aten.add.Tensor(%x, %w)\n"
    "node %y: float32[s0, 3] = aten.relu.default(%sum)\n"
    "output %y\n"
    "end\n";

graft_sink into(std::string* text) {
  return {text, [](void* context, const void* data, size_t bytes) {
            static_cast<std::string*>(context)->append(static_cast<const char*>(data), bytes);
          }};
}

// The blob of the text; Omitted where the compiler takes no addition in float32.
std::string compiled(Session& session, const graft_graph_compiler_table& compiler) {
  std::string blob;
  const graft_status status =
      compiler.graph_compile(session.device, kText, std::strlen(kText), into(&blob));
  if (status == GRAFT_UNSUPPORTED) throw Omitted("a graph of an addition and a relu in float32");
  session.expect(status, GRAFT_OK, "graph_compile");
  return blob;
}

graft_executable loaded(Session& session, const graft_graph_compiler_table& compiler,
                        const std::string& blob) {
  graft_executable executable = nullptr;
  session.expect(compiler.executable_load(session.device, blob.data(), blob.size(), &executable),
                 GRAFT_OK, "executable_load of graph_compile's blob");
  return executable;
}

std::vector<uint8_t> bytes_of(const std::vector<float>& numbers) {
  std::vector<uint8_t> bytes(numbers.size() * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// One run with so many rows; gives the address of its output.
graft_address run(Session& session, const graft_graph_compiler_table& compiler, graft_stream stream,
                  graft_executable executable, int64_t rows) {
  std::vector<float> x;
  for (int64_t i = 0; i < rows * 3; ++i) x.push_back(static_cast<float>(i) - 4);
  const graft_address inputs[] = {session.allocate(x.size() * 4), session.allocate(12)};
  const graft_address output = session.allocate(x.size() * 4);
  session.upload(stream, inputs[0], bytes_of(x));
  session.upload(stream, inputs[1], bytes_of({1, 0, -1}));
  graft_plan_needs needs{sizeof(graft_plan_needs), 0, 0};
  session.expect(compiler.executable_needs(executable, &rows, 1, &needs), GRAFT_OK,
                 "executable_needs");
  graft_graph_run call{sizeof(graft_graph_run), 7, inputs, &output, &rows, 0, 2, 1, 1, 0};
  if (needs.workspace_bytes != 0) call.workspace = session.allocate(needs.workspace_bytes);
  session.expect(compiler.executable_run(stream, executable, &call), GRAFT_OK, "executable_run");
  return output;
}

void require_result(Session& session, graft_stream stream, graft_address output, int64_t rows) {
  std::vector<float> expected;
  for (int64_t i = 0; i < rows * 3; ++i) {
    const float sum = static_cast<float>(i) - 4 + static_cast<float>(1 - i % 3);
    expected.push_back(sum > 0 ? sum : 0);
  }
  const auto found = session.download(stream, output, expected.size() * 4);
  Session::require(found == bytes_of(expected),
                   "relu(x + w) is wrong with " + std::to_string(rows) + " rows");
}

}  // namespace

DRIVER_CASE(offered, "graft.graph_compiler: the answer to an offer names nodes of the text",
            "extension", kOpen) {
  const auto& compiler = session.extension<graft_graph_compiler_table>();
  std::string answer;
  const graft_status status =
      compiler.graph_offer(session.device, kText, std::strlen(kText), into(&answer));
  if (status == GRAFT_UNSUPPORTED) return;
  session.expect(status, GRAFT_OK, "graph_offer");
  for (size_t begin = 0; begin < answer.size();) {
    const size_t end = std::min(answer.find('\n', begin), answer.size());
    const std::string line = answer.substr(begin, end - begin);
    const bool known = line.empty() || line == "*" || line == "sum" || line == "%sum" ||
                       line == "y" || line == "%y";
    Session::require(known, "the answer has the line \"" + line + "\"");
    begin = end + 1;
  }
}

DRIVER_CASE(sizes,
            "graft.graph_compiler: an executable runs with each size, and its runs outlive it",
            "extension", kOpen) {
  const auto& compiler = session.extension<graft_graph_compiler_table>();
  graft_executable executable = loaded(session, compiler, compiled(session, compiler));
  graft_stream stream = session.stream();
  std::vector<graft_address> outputs;
  for (int64_t rows : {4, 1, 64}) {
    outputs.push_back(run(session, compiler, stream, executable, rows));
  }
  session.expect(compiler.executable_destroy(executable), GRAFT_OK,
                 "executable_destroy beside its runs");
  require_result(session, stream, outputs[0], 4);
  require_result(session, stream, outputs[1], 1);
  require_result(session, stream, outputs[2], 64);
}

DRIVER_CASE(damaged, "graft.graph_compiler: a damaged blob is refused", "extension", kOpen) {
  const auto& compiler = session.extension<graft_graph_compiler_table>();
  std::string blob = compiled(session, compiler);
  for (char& byte : blob) byte = static_cast<char>(~byte);
  graft_executable executable = nullptr;
  session.expect(compiler.executable_load(session.device, blob.data(), blob.size(), &executable),
                 GRAFT_INVALID_ARGUMENT, "executable_load of a damaged blob");
  Session::require(executable == nullptr, "a failed executable_load wrote its out_ parameter");
}
