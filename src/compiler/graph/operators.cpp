// src/compiler/graph/operators.cpp: the operators that nodes have, each with what is known of it.
#include "compiler/graph/operators.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <mutex>
#include <sstream>
#include <unordered_map>

namespace graft::compiler {

namespace {

// Operators of which the compiler needs the class alone, as words of Op::aten.
constexpr struct {
  OpClass cls;
  const char* words;
} kOthers[] = {
    {OpClass::kView, "squeeze.dim squeeze.dims unfold.default unsqueeze.default"},
    {OpClass::kFill,
     "full_like.default(self,fill_value) scalar_tensor.default(s) zeros_like.default(self,=0) "
     "new_zeros.default(self,size,=0) ones.default(size,=1) ones_like.default(self,=1) "
     "new_ones.default(self,size,=1)"},
    {OpClass::kImage,
     "avg_pool2d.default "
     "_adaptive_avg_pool2d.default constant_pad_nd.default upsample_nearest2d.vec "
     "upsample_bilinear2d.vec"},
    {OpClass::kRandom,
     "bernoulli.default bernoulli.p multinomial.default normal.float_float rand_like.default "
     "randint.low randn.default randn_like.default randperm.default"}};

bool is_in_place(std::string_view name) {
  const size_t first = name.find('.');
  const size_t begin = first == std::string_view::npos ? 0 : first + 1;
  const std::string_view base = name.substr(begin, name.find('.', begin) - begin);
  return base.size() > 1 && base.back() == '_' && base[base.size() - 2] != '_';
}

SchemaArgument parameter_of(std::string_view text, int operand) {
  SchemaArgument parameter;
  parameter.operand = operand;
  if (text.size() > 1 && text[1] == ':') {
    parameter.operand = text[0] - '0';
    text.remove_prefix(2);
  }
  const size_t equals = std::min(text.find('='), text.size());
  parameter.name = text.substr(0, equals);
  parameter.fixed = parameter.name.empty();
  text.remove_prefix(equals);
  parameter.needed = text.starts_with("==");
  parameter.text = text.substr(std::min(text.size(), parameter.needed ? size_t{2} : size_t{1}));
  const char* end = parameter.text.data() + parameter.text.size();
  std::from_chars(parameter.text.data(), end, parameter.number);
  return parameter;
}

// What stands in the parentheses of an overload; without them the operands, by position.
std::vector<SchemaArgument> parameters_of(std::string_view text, int operands) {
  std::vector<SchemaArgument> parameters;
  if (text.empty()) {
    for (int i = 0; i < operands; ++i) parameters.push_back({.operand = i});
    return parameters;
  }
  text = text.substr(1, text.size() - 2);
  for (int i = 0; !text.empty(); ++i) {
    const size_t end = std::min(text.find(','), text.size());
    parameters.push_back(parameter_of(text.substr(0, end), i < operands ? i : -1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parameters;
}

class Registry {
 public:
  Registry() {
    std::string word;
#define GRAFT_ROW(id, cls, text) enter(OperatorId::id, OpClass::cls, text);
    GRAFT_OPERATORS(GRAFT_ROW)
#undef GRAFT_ROW
    for (const auto& [cls, words] : kOthers) {
      for (std::istringstream stream{words}; stream >> word;) {
        enter(OperatorId::kUnnamed, cls, word);
      }
    }
    for (const Op& row : op_table()) {
      for (const std::string& overload : overloads_of(row)) serve(row, overload);
    }
  }

  const Operator* at(OperatorId id) const { return &operators_[static_cast<size_t>(id)]; }

  const Operator* find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    return &get(name);
  }

  const Operator* find_users(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = users_.find(name);
    if (found != users_.end()) return found->second;
    Operator& made = operators_.emplace_back();
    made.name = name;
    made.in_place = is_in_place(name);
    made.users = true;
    users_.emplace(made.name, &made);
    return &made;
  }

 private:
  Operator& get(std::string_view name) {
    if (const auto found = by_name_.find(name); found != by_name_.end()) return *found->second;
    Operator& made = operators_.emplace_back();
    made.name = name;
    made.in_place = is_in_place(name);
    by_name_.emplace(made.name, &made);
    return made;
  }

  // Of an overload's text, and what stands behind its name.
  Operator& get(std::string_view text, std::string_view* arguments) {
    const size_t end = std::min(text.find('('), text.size());
    *arguments = text.substr(end);
    return get("aten." + std::string(text.substr(0, end)));
  }

  void enter(OperatorId id, OpClass cls, std::string_view text) {
    std::string_view arguments;
    Operator& made = get(text, &arguments);
    made.id = id;
    made.cls = cls;
    made.parameters = parameters_of(arguments, 0);
  }

  void serve(const Op& row, std::string_view text) {
    std::string_view arguments;
    Operator& made = get(text, &arguments);
    if (made.cls == OpClass::kOther) made.cls = OpClass::kPointwise;
    made.rows.push_back({&row, parameters_of(arguments, row.inputs + row.scalars)});
    std::ranges::stable_sort(
        made.rows, {}, [](const RowCandidate& one) { return one.row->inputs + one.row->scalars; });
    made.parameters = made.rows[0].parameters;
  }

  std::deque<Operator> operators_;  // the named ones at their enumerators
  std::unordered_map<std::string_view, Operator*> by_name_, users_;
  std::mutex mutex_;
};

Registry& registry() {
  static auto* made = new Registry();
  return *made;
}

}  // namespace

const SchemaArgument* Operator::parameter(std::string_view wanted) const {
  const auto found = std::ranges::find(parameters, wanted, &SchemaArgument::name);
  return found == parameters.end() ? nullptr : &*found;
}

std::string Operator::qualified() const {
  std::string text = name;
  if (const size_t dot = text.find('.'); dot != std::string::npos) text.replace(dot, 1, "::");
  if (text.ends_with(".default")) text.resize(text.size() - 8);
  return text;
}

const Operator* find_operator(std::string_view name) { return registry().find(name); }
const Operator* find_operator(OperatorId id) { return registry().at(id); }
const Operator* find_user_operator(std::string_view name) { return registry().find_users(name); }

}  // namespace graft::compiler
