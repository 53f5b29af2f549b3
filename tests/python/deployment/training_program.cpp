// tests/python/deployment/training_program.cpp: a user's program that trains a model.
#include <cstdio>
#include <fstream>
#include <graft/deploy.hpp>
#include <iterator>
#include <vector>

using graft::deployed::Array;

template <class Number>
std::vector<Number> read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(numbers.data()));
  return numbers;
}

// training_program step x y weight: steps over batches of eight rows, with a tenth of the learning
// rate from the fourth on. Prints the losses and writes the first layer's weight.
int main(int, char** words) {
  try {
    const graft::deployed::Model step(words[1]);
    const auto x = read<float>(words[2]);
    const auto y = read<int64_t>(words[3]);
    for (size_t batch = 0; batch * 8 < y.size(); ++batch) {
      const float rate = 0.01F;
      if (batch == 3) step.write_state("optimizer.lr", Array(&rate, {}));
      const auto results = step.run({{x.data() + batch * 48, {8, 6}}, {y.data() + batch * 8, {8}}});
      std::printf("%.17g\n", static_cast<double>(*results.at("loss").data<float>()));
    }
    const auto state = step.read_state();
    std::ofstream(words[4], std::ios::binary)
        .write(reinterpret_cast<const char*>(state.at("0.weight").data<float>()), 16 * 6 * 4);
  } catch (const graft::deployed::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
