// tests/compiler/run/fuzz_test.cpp: random graphs through text form and passes, against the
// reference.
#include <cmath>
#include <random>
#include <sstream>

#include "compiler/passes/passes.h"
#include "tests/compiler/graph/text_builder.h"
#include "tests/compiler/run/random_graph.h"
#include "tests/compiler/run/reference.h"

namespace graft::compiler::test {
namespace {

class Generator {
 public:
  Generator(unsigned seed, int nodes) : random_(seed), nodes_(nodes) {}

  std::string run() {
    body_ =
        "input %x: float32[4, 8] activation\ninput %y: float32[4, 8] activation\n"
        "input %b: float32[8] parameter\ninput %m: float32[8] buffer mutated\n"
        "input %w: float32[8, 8] parameter\n"
        "constant %one: float32[] = [1.0]\nconstant %two: float32[] = [2.0]\n";
    values_ = {"x", "y"};
    for (int i = 0; i < nodes_; ++i) node();
    for (int i = 0; i < 3; ++i) body_ += "output %" + pick() + "\n";
    return body_;
  }

 private:
  std::string pick() { return values_[random_() % values_.size()]; }

  std::string operand() {
    switch (random_() % 8) {
      case 0:
        return "%b";
      case 1:
        return "%m";
      case 2:
        return "%one";
      case 3:
        return random_() % 2 ? "1.0" : "0.5";
      default:
        return "%" + pick();
    }
  }

  void add(const std::string& op, const std::string& arguments, const std::string& mark = "") {
    const std::string name = "n" + std::to_string(count_++);
    body_ += "node %" + name + ": float32[4, 8] = aten." + op + "(" + arguments + ")" + mark +
             " at \"m.py:" + std::to_string(count_) + "\"\n";
    values_.push_back(name);
  }

  void node() {
    static constexpr const char* kUnary[] = {"neg", "relu", "tanh", "sigmoid", "clone"};
    static constexpr const char* kBinary[] = {"add", "sub", "mul", "add"};
    const std::string a = "%" + pick(), n = std::to_string(count_);
    switch (random_() % 12) {
      case 0:
      case 1:
        return add(std::string(kUnary[random_() % 5]) + ".default", a);
      case 2:
      case 3:
      case 4:
        return add(std::string(kBinary[random_() % 4]) + ".Tensor", a + ", " + operand());
      case 5:
        return add("_softmax.default", a + ", -1, false");
      case 6:
        body_ += "node %s" + n + ": float32[4, 1] = aten." +
                 (random_() % 2 ? "mean.dim" : "amax.default") + "(" + a + ", [-1], true)\n";
        return add("sub.Tensor", a + ", %s" + n);
      case 7:
        body_ +=
            "node %t" + n + ": float32[8, 4](1, 8) = aten.t.default(" + a + ") views " + a + "\n";
        return add("transpose.int", "%t" + n + ", 0, 1", " views %t" + n);
      case 8:
        body_ += "node %w" + n + ": float32[8] = aten." +
                 (random_() % 2 ? "mul_.Tensor(%m, 0.5)" : "add_.Tensor(%m, %b)") +
                 " writes %m views %m\n";
        return add("add.Tensor", a + ", %w" + n);
      case 9:
        return add("mm.default", a + ", %w");
      case 10:
        return add("flip.default", a + (random_() % 2 ? ", [1]" : ", [0, -1]"));
      default:
        return add("pow.Tensor_Scalar", a + ", " + (random_() % 2 ? "2" : "1"));
    }
  }

  std::mt19937 random_;
  const int nodes_;
  int count_ = 0;
  std::string body_;
  std::vector<std::string> values_;
};

bool sound(const std::string& body) {
  return message([&] { graph_of(body); }).empty();
}

bool close(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)) + 1e-12;
}

// What goes wrong with a graph; "" when nothing does.
std::string failure(const std::string& body) {
  const Graph before = graph_of(body);
  if (body_of(graph_of(body_of(before))) != body_of(before)) return "the text is not stable";
  const Tensors inputs = random_inputs(before, 5);
  const auto expected = reference(before, inputs);
  std::string wrong;
  for (const auto& passes : {inference_passes(), training_passes()}) {
    Graph graph = before;
    const std::string text = message([&] {
      run_passes(graph, passes, [&](std::string_view stage, const Graph& at, int) {
        if (!wrong.empty()) return;
        const auto results = reference(at, inputs);
        for (size_t i = 0; i < expected.size(); ++i) {
          for (size_t k = 0; k < expected[i].size(); ++k) {
            if (!close(results[i][k], expected[i][k]))
              wrong = "other results after " + std::string(stage);
          }
        }
        if (body_of(graph_of(body_of(at))) != body_of(at)) wrong = "the text is not stable";
      });
    });
    if (!text.empty()) return text;
  }
  return wrong;
}

// One thread, and no memory but vectors: under a sanitizer a part of the graphs, another one in
// each run.
TEST(Fuzz, PassesKeepResults) {
  constexpr unsigned kGraphs = 120;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr unsigned kParts = 5;
#else
  constexpr unsigned kParts = 1;
#endif
  const auto drawn = static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed());
  for (unsigned seed = drawn % kParts; seed < kGraphs; seed += kParts) {
    const std::string body = random_graph(seed, 3 + static_cast<int>(seed % 24));
    const std::string wrong = failure(body);
    if (wrong.empty()) continue;
    FAIL() << "seed " << seed << ": " << wrong << "\nshrunk to\n"
           << shrunk(body, [](const std::string& smaller) { return !failure(smaller).empty(); });
  }
}

TEST(Fuzz, FindsAndShrinksAPlantedBug) {
  // Drops every relu: a bug that graphs without one do not show.
  auto planted = [](const std::string& body) {
    Graph graph = graph_of(body);
    const Tensors inputs = random_inputs(graph, 5);
    const auto expected = reference(graph, inputs);
    for (NodeId id : graph.order) {
      if (!graph.nodes[id].is(OperatorId::kRelu)) continue;
      graph.nodes[id].op = find_operator(OperatorId::kClone);
    }
    return reference(graph, inputs) != expected;
  };
  unsigned seed = 0;
  while (seed < 100 && !planted(random_graph(seed, 20))) ++seed;
  ASSERT_LT(seed, 100u);
  const std::string small = shrunk(random_graph(seed, 20), planted);
  EXPECT_TRUE(planted(small));
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_LE(lines(small), 8) << small;
}

}  // namespace

std::string random_graph(unsigned seed, int nodes) { return Generator(seed, nodes).run(); }

std::string shrunk(std::string body, const std::function<bool(const std::string& body)>& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    std::vector<std::string> lines;
    std::istringstream stream(body);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    for (size_t i = lines.size(); i-- > 0;) {
      std::string without, name, first;
      for (size_t k = 0; k < lines.size(); ++k) {
        if (k != i) without += lines[k] + "\n";
      }
      // A node's users may read its first operand instead.
      std::string bypassed = without;
      const size_t begin = lines[i].find('%'), open = lines[i].find("(%");
      if (begin != std::string::npos && open != std::string::npos) {
        name = lines[i].substr(begin, lines[i].find(':') - begin);
        first = lines[i].substr(open + 1, lines[i].find_first_of(",)", open) - open - 1);
        for (size_t at = 0; (at = bypassed.find(name, at)) != std::string::npos;
             at += first.size()) {
          const char next = bypassed[at + name.size()];
          if (next == ',' || next == ')' || next == '\n') bypassed.replace(at, name.size(), first);
        }
      }
      for (const std::string& candidate : {without, bypassed}) {
        if (smaller || candidate == body || !sound(candidate) || !fails(candidate)) continue;
        body = candidate;
        smaller = true;
      }
      if (smaller) break;
    }
  }
  return body;
}

}  // namespace graft::compiler::test
