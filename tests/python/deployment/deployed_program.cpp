// tests/python/deployment/deployed_program.cpp: runs a model of two float32 inputs, "x" of sizes
// [rows, 3] filled with 1, 2, 3, ... and "scale" of none, by name, by position and from four
// threads, and prints the elements of the result "sum".
#include <cstdio>
#include <cstdlib>
#include <graft/deploy.hpp>
#include <thread>

namespace deployed = graft::deployed;

namespace {

std::vector<float> floats(const deployed::Array& array) {
  return {array.data<float>(), array.data<float>() + array.count()};
}

// The text of the Error with this status that work throws; else ends the program.
template <class Work>
std::string refused(graft_status status, Work&& work) {
  try {
    work();
  } catch (const deployed::Error& error) {
    if (error.status() == status) return error.what();
    std::fprintf(stderr, "status %d: %s\n", error.status(), error.what());
  }
  std::exit(3);
}

void print_refusals(const deployed::Model& model, const deployed::Array& x,
                    const deployed::Array& scale) {
  const std::vector<std::string> texts = {refused(GRAFT_NOT_FOUND,
                                                  [&] {
                                                    model.run_named({{"x", x}, {"factor", scale}});
                                                  }),
                                          refused(GRAFT_INVALID_ARGUMENT,
                                                  [&] {
                                                    model.run_named({{"x", x}});
                                                  }),
                                          refused(GRAFT_INVALID_ARGUMENT,
                                                  [&] {
                                                    model.run_named({{"x", x}, {"x", x}});
                                                  }),
                                          refused(GRAFT_INVALID_ARGUMENT,
                                                  [&] {
                                                    model.run({scale, x});
                                                  }),
                                          refused(GRAFT_INVALID_ARGUMENT,
                                                  [&] {
                                                    model.run({x, scale})[0].data<double>();
                                                  }),
                                          refused(GRAFT_NOT_FOUND, [&] {
                                            model.run({x, scale})[7];
                                          })};
  for (const std::string& text : texts) std::fprintf(stderr, "%s\n", text.c_str());
}

int run(const char* path, int64_t rows) {
  auto model = std::make_unique<deployed::Model>(path);
  std::vector<float> elements;
  for (int64_t i = 0; i < 3 * rows; ++i) elements.push_back(static_cast<float>(i + 1));
  const float two = 2;
  const deployed::Array x(elements.data(), {rows, 3}), scale(&two, {});
  const deployed::Results results = model->run_named({{"scale", scale}, {"x", x}});
  const std::vector<float> sum = floats(results.at("sum"));
  std::vector<std::thread> threads;
  std::vector<int> equal(4, 0);
  for (int& one : equal) {
    threads.emplace_back([&] { one = floats(model->run({x, scale}).at("sum")) == sum; });
  }
  for (std::thread& thread : threads) thread.join();
  if (equal != std::vector<int>(4, 1)) return 4;
  print_refusals(*model, x, scale);
  model.reset();  // results outlive it
  if (floats(results.at("sum")) != sum) return 5;
  for (float element : sum) std::printf("%.9g\n", static_cast<double>(element));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return count == 3 ? run(words[1], std::atoll(words[2])) : 2;
  } catch (const deployed::Error& error) {
    std::fprintf(stderr, "%d: %s\n", error.status(), error.what());
    return 1;
  }
}
