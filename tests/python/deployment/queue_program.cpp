// tests/python/deployment/queue_program.cpp: runs a model of one float32 input [4, 3] on queues of
// all devices and of four threads, and prints the elements of its first result. With the word
// "fails" the device is expected to fail: prints what the queue reports, then the elements.
#include <cmath>
#include <cstdio>
#include <graft/deploy.hpp>
#include <string>
#include <thread>

namespace deployed = graft::deployed;

namespace {

using Floats = std::vector<float>;

// By way of memory on the device, twice.
Floats on_device(const deployed::Model& model, const deployed::Queue& queue, const Floats& x) {
  const deployed::DeviceArray input(queue, {x.data(), {4, 3}});
  const deployed::Results results = model.enqueue(queue, {input});
  Floats y(12);
  results.on_device(0).read(queue, y.data());
  queue.synchronize();
  return y;
}

Floats by_results(const deployed::Model& model, const deployed::Queue& queue, const Floats& x) {
  const deployed::Results results = model.enqueue(queue, {deployed::Array(x.data(), {4, 3})});
  const deployed::Array y = results[0];
  return {y.data<float>(), y.data<float>() + y.count()};
}

bool refused(const deployed::Model& model, const deployed::Queue& queue, const Floats& x) {
  const deployed::DeviceArray other(queue, GRAFT_FLOAT32, {12});
  Floats y(12);
  std::vector<double> doubles(12);
  int count = 0;
  const auto refuse = [&](auto&& work) {
    try {
      work();
    } catch (const deployed::Error& error) {
      count += error.status() == GRAFT_INVALID_ARGUMENT;
    }
  };
  refuse([&] { model.enqueue(queue, {other}); });
  refuse([&] { other.read(queue, doubles.data()); });
  refuse([&] { other.write(queue, {x.data(), {4, 3}}); });
  refuse([&] { model.run({{x.data(), {4, 3}}}).on_device(0); });
  return count == 4;
}

bool near(const Floats& a, const Floats& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > 1e-4F) return false;
  }
  return a.size() == b.size();
}

// As the null driver's device does.
bool lacks_kernels(const deployed::Model& model, const Floats& x) {
  try {
    model.run({{x.data(), {4, 3}}});
    return false;
  } catch (const deployed::Error& error) {
    if (error.status() == GRAFT_UNSUPPORTED) return true;
    throw;
  }
}

// A device's memory is of that device alone.
bool devices_apart(const char* path, const Floats& x, const Floats& wanted) {
  const deployed::Queue first(0);
  const deployed::DeviceArray there(first, {x.data(), {4, 3}});
  for (uint32_t device = 1; device < deployed::device_count(); ++device) {
    const deployed::Model model(path, device);
    if (lacks_kernels(model, x)) continue;
    const deployed::Queue queue(device);
    if (!near(on_device(model, queue, x), wanted)) return false;
    int refused = 0;
    try {
      model.enqueue(queue, {there});
    } catch (const deployed::Error&) {
      ++refused;
    }
    try {
      model.enqueue(first, {there});
    } catch (const deployed::Error&) {
      ++refused;
    }
    try {
      queue.wait(first);
    } catch (const deployed::Error&) {
      ++refused;
    }
    if (refused != 3) return false;
  }
  return true;
}

int run(const char* path, bool fails) {
  const deployed::Model model(path);
  const deployed::Queue queue;
  Floats x(12);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  if (fails) {
    const deployed::Results results = model.enqueue(queue, {deployed::Array(x.data(), {4, 3})});
    try {
      queue.synchronize();
      return 6;
    } catch (const deployed::Error& error) {
      std::printf("%s\n", error.what());
    }
  }
  const Floats y = on_device(model, queue, x);
  if (by_results(model, queue, x) != y || !refused(model, queue, x)) return 3;
  if (!devices_apart(path, x, y)) return 5;
  std::vector<std::thread> threads;
  std::vector<int> equal(4, 0);
  for (int& one : equal) {
    threads.emplace_back([&] {
      const deployed::Queue mine;
      one = on_device(model, mine, x) == y && by_results(model, mine, x) == y;
      while (!mine.query()) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (equal != std::vector<int>(4, 1)) return 4;
  for (float element : y) std::printf("%.9g\n", static_cast<double>(element));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return count >= 2 ? run(words[1], count == 3 && std::string(words[2]) == "fails") : 2;
  } catch (const deployed::Error& error) {
    std::fprintf(stderr, "%d: %s\n", error.status(), error.what());
    return 1;
  }
}
