// tests/deploy/queue_test.cpp: calls that do not wait, and tensors that stay on the device.
#include "deploy/calls/queue.h"

#include <thread>

#include "tests/deploy/queue_fixture.h"

namespace graft::deploy::test {
namespace {

TEST_F(QueueTest, GivesWhatAWaitingCallGives) {
  const auto model = small();
  Queue queue(device());
  for (int64_t n : {1, 4, 64, 4}) {
    const Floats x = counted(n, -3);
    const Floats wanted = values_of(model->run(std::vector{table(x)})[0]);
    const DeviceArray array = on_device(&queue, x);
    const auto host = model->enqueue(queue, Inputs{{table(x)}});
    const auto device = model->enqueue(queue, Inputs{{{}, &array}});
    EXPECT_EQ(values_of(host->on_host(0)), wanted);
    EXPECT_EQ(values_of(device->on_host(0)), wanted);
    EXPECT_EQ(read(&queue, device->on_device(0)), wanted);
    EXPECT_EQ(wanted, expected(x));
  }
}

TEST_F(QueueTest, HostInputsAreReadDuringTheCall) {
  const auto model = small();
  Queue queue(device());
  std::vector<std::unique_ptr<QueuedResults>> all;
  for (int i = 0; i < 8; ++i) {
    const auto x = std::make_unique<Floats>(counted(4, static_cast<float>(i)));
    all.push_back(model->enqueue(queue, Inputs{{table(*x)}}));
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(values_of(all[i]->on_host(0)), expected(counted(4, static_cast<float>(i))));
  }
}

TEST_F(QueueTest, ResultsAreInputsOfAnotherModelWithoutTheHost) {
  const auto first = small();
  const auto second = of_text(
      "symbol s0 range 1..64 hint 4 from %x[0]\n"
      "input %x: float32[s0, 2] activation",
      "node %y: float32[s0, 2] = aten.mul.Tensor(%x, 3.0)\noutput %y\n", {"y"});
  Queue queue(device());
  const Floats x = counted(5, 1);
  const auto middle = first->enqueue(queue, Inputs{{table(x)}});
  const uint64_t copies = device().streams().counts().copies;
  auto results = second->enqueue(queue, Inputs{{{}, &middle->on_device(0)}});
  results = second->enqueue(queue, Inputs{{{}, &results->on_device(0)}});
  EXPECT_EQ(device().streams().counts().copies, copies);
  Floats wanted = expected(x);
  for (float& one : wanted) one *= 9;
  EXPECT_EQ(values_of(results->on_host(0)), wanted);
}

TEST_F(QueueTest, ResultsAreRowMajorAndShareNoMemory) {
  const auto model = of_text("input %x: float32[2, 3] activation",
                             "node %t: float32[3, 2](1, 3) = aten.t.default(%x) views %x\n"
                             "node %d: float32[2, 3] = aten.mul.Tensor(%x, 2.0)\n"
                             "node %v: float32[3, 2] = aten.view.default(%d, [3, 2]) views %d\n"
                             "output %t alias %x\noutput %x alias %x\noutput %d\n"
                             "output %v alias %d\n",
                             {"turned", "same", "double", "view"});
  Queue queue(device());
  const Floats x = {1, 2, 3, 4, 5, 6}, other(6, -1);
  const DeviceArray input = on_device(&queue, x);
  const auto results = model->enqueue(queue, Inputs{{{}, &input}});
  for (size_t i = 0; i < 3; ++i) {
    const DeviceArray& one = results->on_device(i);
    queue.write(one,
                shaped(GRAFT_FLOAT32, other.data(), {one.view().sizes[0], one.view().sizes[1]}));
  }
  EXPECT_EQ(read(&queue, results->on_device(3)), (Floats{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(read(&queue, input), x);
  const auto again = model->enqueue(queue, Inputs{{{}, &input}});
  queue.write(input, table(other));
  EXPECT_EQ(values_of(again->on_host(0)), (Floats{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(values_of(again->on_host(1)), x);
}

TEST_F(QueueTest, EverythingMayGoBeforeItIsDone) {
  device().synchronize();
  const int64_t before = device().allocator().statistics().allocated_bytes.all().current;
  const Floats x = counted(64, 1);
  std::unique_ptr<QueuedResults> results, others;
  {
    const auto model = small();
    Queue queue(device());
    const DeviceArray input = on_device(&queue, x);
    results = model->enqueue(queue, Inputs{{{}, &input}});
    for (int i = 0; i < 10; ++i) {
      others = model->enqueue(queue, Inputs{{{}, &input}});
    }
    others.reset();
  }
  EXPECT_EQ(values_of(results->on_host(0)), expected(x));
  results.reset();
  device().synchronize();
  EXPECT_EQ(device().allocator().statistics().allocated_bytes.all().current, before);
}

// labels: threads
TEST_F(QueueTest, QueuesOfThreadsShareAModel) {
  const auto model = small();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      Queue queue(device());
      for (int i = 0; i < 20; ++i) {
        const Floats x = counted(static_cast<int64_t>(t) + 1, static_cast<float>(i));
        const DeviceArray input = on_device(&queue, x);
        const auto results = model->enqueue(queue, Inputs{{{}, &input}});
        wrong[t] += read(&queue, results->on_device(0)) != expected(x);
        wrong[t] += values_of(model->run(std::vector{table(x)})[0]) != expected(x);
        wrong[t] += !queue.query();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

// Each call sees the sum of all before it, whichever queue they came from.
// labels: threads
TEST_F(QueueTest, StateIsRightWithTwoQueues) {
  const auto model = sum_of_calls();
  const Floats one(6, 1);
  std::vector<std::vector<float>> seen(2);
  std::vector<std::thread> threads;
  for (auto& mine : seen) {
    threads.emplace_back([&] {
      Queue queue(device());
      std::vector<std::unique_ptr<QueuedResults>> all;
      for (int i = 0; i < 25; ++i) {
        all.push_back(model->enqueue(queue, Inputs{{table(one)}}));
      }
      for (const auto& results : all) mine.push_back(values_of(results->on_host(0))[5]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<float> all, wanted;
  for (const auto& mine : seen) {
    EXPECT_TRUE(std::ranges::is_sorted(mine));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  for (int i = 1; i <= 50; ++i) wanted.push_back(static_cast<float>(i));
  std::ranges::sort(all);
  EXPECT_EQ(all, wanted);
  EXPECT_EQ(values_of(model->read_state()[0]), Floats(6, 50));
}

TEST_F(QueueTest, NumbersOfACallAreInHostMemory) {
  Manifest manifest;
  manifest.arguments = {"x", "n"};
  manifest.graph =
      "graft-graph 1\ngraph number\ninput %x: float32[2, 3] activation\ninput %n: float32[] "
      "scalar\n"
      "node %y: float32[2, 3] = aten.mul.Tensor(%x, %n)\noutput %y\nend\n";
  manifest.inputs = {{"x", false}, {"n", false}};
  manifest.outputs = {"y"};
  const auto model = opened(manifest);
  Queue queue(device());
  const Floats x = {1, 2, 3, 4, 5, 6}, two = {2};
  const TensorView number = shaped(GRAFT_FLOAT32, two.data(), {});
  const DeviceArray there = queue.allocate(number), input = on_device(&queue, x);
  EXPECT_NE(refusal([&] {
              model->enqueue(queue, Inputs{{table(x)}, {{}, &there}});
            }).find("give an array in host memory"),
            std::string::npos);
  const auto results = model->enqueue(queue, Inputs{{{}, &input}, {number}});
  EXPECT_EQ(values_of(results->on_host(0)), (Floats{2, 4, 6, 8, 10, 12}));
}

TEST_F(QueueTest, ArraysAreWrittenAndReadInTheQueuesOrder) {
  Queue queue(device());
  const Floats columns = {1, 4, 2, 5, 3, 6};
  TensorView turned = shaped(GRAFT_FLOAT32, columns.data(), {2, 3});
  turned.strides[0] = 1, turned.strides[1] = 2;
  const DeviceArray array = queue.allocate(shaped(GRAFT_FLOAT32, nullptr, {2, 3}));
  queue.write(array, turned);
  Floats first(6), second(6);
  queue.read(array, table(first));
  queue.write(array, table(columns));
  queue.read(array, table(second));
  queue.synchronize();
  EXPECT_EQ(first, (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(second, columns);
  EXPECT_NE(refusal([&] { queue.read(array, turned); }).find("not row-major"), std::string::npos);
  EXPECT_NE(refusal([&] {
              queue.write(array, table(counted(3, 0)));
            }).find("the array is float32[2, 3], the host memory float32[3, 3]"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              queue.write(array, shaped(GRAFT_FLOAT32, nullptr, {2, 3}));
            }).find("without data"),
            std::string::npos);
  const DeviceArray none = queue.allocate(shaped(GRAFT_FLOAT32, nullptr, {0, 3}));
  queue.write(none, shaped(GRAFT_FLOAT32, nullptr, {0, 3}));
  queue.read(none, shaped(GRAFT_FLOAT32, nullptr, {0, 3}));
  EXPECT_NO_THROW(queue.synchronize());
}

TEST_F(QueueTest, OneQueueWaitsForAnother) {
  const auto model = small();
  Queue first(device()), second(device());
  for (int i = 0; i < 10; ++i) {
    const Floats x = counted(64, static_cast<float>(i));
    const DeviceArray input = on_device(&first, x);
    second.wait(first);
    const auto results = model->enqueue(second, Inputs{{{}, &input}});
    first.wait(second);
    EXPECT_EQ(read(&first, results->on_device(0)), expected(x));
  }
}

TEST_F(QueueTest, AQueueThatIsNeverWaitedForKeepsNoCalls) {
  const auto model = small();
  Queue queue(device());
  const Floats x = counted(1, 1);
  const DeviceArray array = queue.allocate(table(x));
  for (int i = 0; i < 200; ++i) {
    queue.write(array, table(x));
    const auto results = model->enqueue(queue, Inputs{{{}, &array}});
    EXPECT_EQ(values_of(results->on_host(0)), expected(x));
    EXPECT_LE(queue.kept(), 3u);
  }
}

}  // namespace
}  // namespace graft::deploy::test
