// tests/drivers/check/operation_cases.cpp: the extension graft.ops against plain loops.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "check/cases.h"
#include "graft/extensions.h"

using graft::check::Session;

namespace {

constexpr int64_t kRows = 5, kColumns = 7, kCount = kRows * kColumns;
using Values = std::vector<float>;

// An operator on float32 matrices, and what it gives.
struct Operator {
  const char* name;
  std::vector<int64_t> integers;
  int inputs;
  bool reduces;  // along the columns
  Values (*compute)(const Values& x, const Values& y);
};

template <class Formula>
Values each(const Values& x, const Formula& formula) {
  Values made(x.size());
  for (size_t i = 0; i < x.size(); ++i) made[i] = formula(i);
  return made;
}

Values softmax(const Values& x, const Values&) {
  Values made(x.size());
  for (size_t row = 0; row < kRows; ++row) {
    const float* from = &x[row * kColumns];
    const float largest = *std::max_element(from, from + kColumns);
    float sum = 0;
    for (size_t i = 0; i < kColumns; ++i) sum += std::exp(from[i] - largest);
    for (size_t i = 0; i < kColumns; ++i) {
      made[row * kColumns + i] = std::exp(from[i] - largest) / sum;
    }
  }
  return made;
}

Values sums(const Values& x, const Values&) {
  Values made(kRows, 0.0f);
  for (size_t i = 0; i < x.size(); ++i) made[i / kColumns] += x[i];
  return made;
}

const Operator kOperators[] = {
    {"plain_add",
     {GRAFT_FLOAT32},
     2,
     false,
     [](const Values& x, const Values& y) {
       return each(x, [&](size_t i) { return x[i] + y[i]; });
     }},
    {"mul",
     {GRAFT_FLOAT32},
     2,
     false,
     [](const Values& x, const Values& y) {
       return each(x, [&](size_t i) { return x[i] * y[i]; });
     }},
    {"relu",
     {GRAFT_FLOAT32},
     1,
     false,
     [](const Values& x, const Values&) {
       return each(x, [&](size_t i) { return std::max(x[i], 0.0f); });
     }},
    {"softmax", {1, 0}, 1, false, softmax},
    {"reduce_sum", {}, 1, true, sums},
};

graft_tensor matrix(bool reduced) {
  graft_tensor made{};
  made.dtype = GRAFT_FLOAT32, made.rank = 2;
  made.sizes[0] = kRows, made.sizes[1] = kColumns;
  made.strides[0] = reduced ? 1 : kColumns, made.strides[1] = reduced ? 0 : 1;
  return made;
}

graft_address upload(Session& session, graft_stream stream, const Values& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  const graft_address address = session.allocate(bytes.size());
  session.upload(stream, address, bytes);
  return address;
}

Values input(int seed) {
  Values made(kCount);
  for (size_t i = 0; i < made.size(); ++i) {
    made[i] = static_cast<float>((static_cast<int>(i) * 37 + seed * 11) % 17 - 8) / 4;
  }
  return made;
}

graft_argument argument(graft_address address, uint64_t bytes, uint8_t access) {
  return {GRAFT_ARGUMENT_ADDRESS, 0, access, 0, address, bytes};
}

// False where the driver does not take the operator.
bool check_operator(Session& session, const graft_ops_table& ops, const Operator& one) {
  if (ops.operation_known(session.device, one.name) == GRAFT_UNSUPPORTED) return false;
  graft_tensor tensors[3] = {matrix(one.reduces), matrix(false), matrix(false)};
  graft_operation call{};
  call.struct_size = sizeof call;
  call.name = one.name;
  call.tensors = tensors, call.tensor_count = static_cast<uint32_t>(1 + one.inputs);
  call.integers = one.integers.data();
  call.integer_count = static_cast<uint32_t>(one.integers.size());
  graft_plan_needs needs{};
  needs.struct_size = sizeof needs;
  graft_plan plan = nullptr;
  const graft_status status = ops.operation_plan(session.device, &call, &needs, &plan);
  if (status == GRAFT_UNSUPPORTED) return false;
  session.expect(status, GRAFT_OK, std::string("operation_plan of ") + one.name);
  std::memset(tensors, 0, sizeof tensors);  // what it points to was read
  const Values x = input(1), y = input(2), wanted = one.compute(x, y);
  graft_stream stream = session.stream();
  const graft_address result = upload(session, stream, Values(wanted.size(), -1.0f));
  graft_address scratch = 0;
  if (needs.workspace_bytes > 0) scratch = session.allocate(needs.workspace_bytes);
  std::vector<graft_argument> arguments;
  arguments.push_back(argument(result, wanted.size() * 4, GRAFT_ACCESS_WRITE));
  arguments.push_back(argument(upload(session, stream, x), kCount * 4, GRAFT_ACCESS_READ));
  if (one.inputs > 1) {
    arguments.push_back(argument(upload(session, stream, y), kCount * 4, GRAFT_ACCESS_READ));
  }
  arguments.push_back(
      argument(scratch, needs.workspace_bytes, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE));
  const graft_launch launch = {
      sizeof launch,   0, {1, 1, 1}, {1, 1, 1}, static_cast<uint32_t>(arguments.size()),
      arguments.data()};
  session.expect(ops.operation_execute(stream, plan, &launch), GRAFT_OK,
                 std::string("operation_execute of ") + one.name);
  session.expect(ops.plan_destroy(plan), GRAFT_OK, "plan_destroy beside its execution");
  const auto bytes = session.download(stream, result, wanted.size() * 4);
  for (size_t i = 0; i < wanted.size(); ++i) {
    float got = 0;
    std::memcpy(&got, bytes.data() + i * 4, sizeof got);
    session.require(std::abs(got - wanted[i]) <= 1e-4f * (1 + std::abs(wanted[i])),
                    std::string(one.name) + ": element " + std::to_string(i) + " is " +
                        std::to_string(got) + " instead of " + std::to_string(wanted[i]));
  }
  return true;
}

}  // namespace

DRIVER_CASE(operations, "graft.ops: what it takes is computed right", "extension", kOpen) {
  const auto& ops = session.extension<graft_ops_table>();
  for (const Operator& one : kOperators) check_operator(session, ops, one);
}

DRIVER_CASE(operation_names, "graft.ops: an unknown operator is UNSUPPORTED", "extension", kOpen) {
  const auto& ops = session.extension<graft_ops_table>();
  session.expect(ops.operation_known(session.device, "no_such_operator"), GRAFT_UNSUPPORTED,
                 "operation_known of a name that Graft does not have");
  graft_operation call{};
  call.struct_size = sizeof call;
  call.name = "no_such_operator";
  graft_plan_needs needs{};
  needs.struct_size = sizeof needs;
  graft_plan plan = nullptr;
  session.expect(ops.operation_plan(session.device, &call, &needs, &plan), GRAFT_UNSUPPORTED,
                 "operation_plan of the same");
}
