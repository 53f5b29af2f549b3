// tests/python/deployment/state_program.cpp: a user's program that keeps a model's state in its
// hands.
#include <cstdio>
#include <graft/deploy.hpp>
#include <vector>

using graft::deployed::Array;

// state_program model: prints "name size" of the state, then how many calls the model counted.
int main(int, char** words) {
  try {
    const graft::deployed::Model model(words[1]);
    for (const auto& one : model.state())
      std::printf("%s %zu\n", one.name.c_str(), one.sizes.size());
    const auto filled = [&] { return *model.read_state().at("filled").data<int64_t>(); };
    const std::vector<float> token(8, 0.5F);
    model.run({{token.data(), {1, 8}}});
    std::printf("%d\n", static_cast<int>(filled()));
    const int64_t four = 4;
    model.write_state("filled", Array(&four, {}));
    model.run({{token.data(), {1, 8}}});
    std::printf("%d\n", static_cast<int>(filled()));
    model.reset();
    std::printf("%d\n", static_cast<int>(filled()));
    model.write_state("nothing", Array(&four, {}));
  } catch (const graft::deployed::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.status() == GRAFT_NOT_FOUND ? 0 : 1;
  }
  return 1;
}
