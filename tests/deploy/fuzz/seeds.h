// tests/deploy/fuzz/seeds.h: whole files that the fuzzer begins with, one for each kind of graph.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/graph/text.h"
#include "runtime/driver/dtype.h"
#include "tests/deploy/fuzz/beside.h"
#include "tests/deploy/small_model.h"

namespace graft::deploy::test {

struct Seed {
  std::string name;
  std::string body;                              // of the graph, between its first lines and "end"
  std::map<std::string, std::string> constants;  // external ones: which tensor each is
};

// Inputs %x... are arguments; %w... are weights of the file.
inline const std::vector<Seed> kSeeds = {
    {"image",
     "input %x: float32[1, 3, 8, 8] activation\ninput %w: float32[4, 3, 3, 3] parameter\n"
     "input %w_g: float32[4] parameter\ninput %w_b: float32[4] parameter\n"
     "input %w_m: float32[4] buffer\ninput %w_v: float32[4] buffer\n"
     "node %c: float32[1, 4, 8, 8] = aten.convolution.default(%x, %w, %w_b, [1, 1], [1, 1], "
     "[1, 1], false, [0, 0], 1)\n"
     "node %n: float32[1, 4, 8, 8], %s: float32[0], %i: float32[0] = "
     "aten._native_batch_norm_legit_no_training.default(%c, %w_g, %w_b, %w_m, %w_v, 0.1, 1e-05)\n"
     "node %r: float32[1, 4, 8, 8] = aten.relu.default(%n)\n"
     "node %p: float32[1, 4, 4, 4], %j: int64[1, 4, 4, 4] = "
     "aten.max_pool2d_with_indices.default(%r, [2, 2], [2, 2])\n"
     "node %m: float32[1, 4, 1, 1] = aten.mean.dim(%p, [-1, -2], true)\n"
     "node %v: float32[1, 4] = aten.view.default(%m, [1, 4]) views %m\noutput %v\n",
     {}},
    {"attention",
     "symbol s0 range 1..64 hint 5 from %x[1]\ninput %x: float32[6, s0, 8] activation\n"
     "input %x_k: float32[6, 7, 8] activation\ninput %w: float32[6, 7, 4] parameter\n"
     "node %kt: float32[6, 8, 7](56, 1, 8) = aten.transpose.int(%x_k, 1, 2) views %x_k\n"
     "node %qk: float32[6, s0, 7] = aten.bmm.default(%x, %kt)\n"
     "node %s: float32[6, s0, 7] = aten.mul.Scalar(%qk, 0.5)\n"
     "node %p: float32[6, s0, 7] = aten._softmax.default(%s, 2, false)\n"
     "node %y: float32[6, s0, 4] = aten.bmm.default(%p, %w)\noutput %y\n",
     {}},
    {"text",
     "symbol s0 range 1..32 hint 3 from integer 0\ninput %x: int64[s0] activation\n"
     "input %w: float32[16, 8] parameter\ninput %w_b: float32[8] parameter\n"
     "node %e: float32[s0, 8] = aten.embedding.default(%w, %x)\n"
     "node %l: float32[s0, 8], %m: float32[s0, 1], %r: float32[s0, 1] = "
     "aten.native_layer_norm.default(%e, [8], %w_b, %w_b, 1e-05)\n"
     "node %g: float32[s0, 8] = aten.gelu.default(%l, approximate=\"tanh\") at \"model.py:3\"\n"
     "node %c: float32[s0, 16] = aten.cat.default([%g, %e], -1)\n"
     "node %a: float32[s0, 8](16, 1), %b: float32[s0, 8](16, 1) = "
     "aten.split.Tensor(%c, 8, 1) views %c\n"
     "node %u: float32[s0, 8] = aten.cumsum.default(%a, 1)\n"
     "node %t: float32[s0, 1] = aten.sum.dim_IntList(%u, [-1], true)\noutput %t\noutput %b\n",
     {}},
    {"numbers",
     "input %x: float32[2, 3] activation\ninput %x_n: int64[] scalar\n"
     "constant %half: float32[3] = [0.5, -1.0, inf]\nconstant %two: int64[] = [2]\n"
     "constant %yes: bool[2, 3] = [true]\nconstant %kept: float32[2, 3] external \"table\"\n"
     "node %a: float32[2, 3] = aten.mul.Tensor(%x, %half)\n"
     "node %b: float32[2, 3] = aten.add.Tensor(%a, %x_n, alpha=2)\n"
     "node %h: float16[2, 3] = aten._to_copy.default(%b, dtype=@float16)\n"
     "node %w: float16[2, 3] = aten.where.self(%yes, %h, 0.0)\n"
     "node %f: float32[2, 3] = aten._to_copy.default(%w, dtype=@float32)\n"
     "node %z: float32[2, 3] = aten.sub.Tensor(%f, %kept)\n"
     "node %o: float32[2, 3] = aten.full.default([2, 3], 3.0)\n"
     "node %y: float32[2, 3] = aten.div.Tensor(%z, %o)\noutput %y\noutput %two\n",
     {{"table", "kept"}}},
    {"layers",
     "symbol s0 range 2..64 hint 4 from %x[0]\ninput %x: float32[s0, 8] activation\n"
     "input %w: float32[8, 8] parameter\ninput %w_b: float32[8] parameter\n"
     "input %w_r: float32[8, 8](1, 8) parameter\n"
     "node %t: float32[8, 8](1, 8) = aten.t.default(%w) views %w\n"
     "node %a: float32[s0, 8] = aten.addmm.default(%w_b, %x, %t)\n"
     "node %r: float32[s0, 8] = aten.silu.default(%a)\n"
     "node %m: float32[s0, 8] = aten.mm.default(%r, %w_r)\n"
     "node %n: float32[s0, 8] = aten.add.Tensor(%m, %x)\n"
     "node %d: float32[s0, 8], %k: bool[s0, 8] = aten.native_dropout.default(%n, 0.5, true) "
     "random\n"
     "node %f: float32[s0, 8] = aten.flip.default(%d, [1])\n"
     "node %s: float32[s0, 4](8, 2) = aten.slice.Tensor(%f, 1, 0, 8, 2) views %f\n"
     "node %v: float32[2*s0, 2] = aten.reshape.default(%s, [-1, 2])\n"
     "output %v\noutput %n\n",
     {}},
    {"state",
     "input %w: float32[2, 3](1, 2) buffer mutated\ninput %x: float32[2, 3] activation\n"
     "node %a: float32[2, 3](1, 2) = aten.add.Tensor(%w, %x)\n"
     "node %c: float32[2, 3](1, 2) = aten.copy_.default(%w, %a) writes %w views %w\n"
     "node %y: float32[2, 3] = aten.mul.Tensor(%x, 2.0)\n"
     "node %z: float32[2, 3] = aten.add.Tensor(%y, %a)\noutput %z\n",
     {}},
    {"choices",
     "input %x: float32[4, 8] activation\ninput %x_i: int64[4, 2] activation\n"
     "input %x_r: int64[4] activation\ninput %w: bfloat16[8] parameter\n"
     "node %t: float32[4, 3], %p: int64[4, 3] = aten.topk.default(%x, 3, -1, true)\n"
     "node %g: float32[4, 2] = aten.gather.default(%x, 1, %x_i)\n"
     "node %i: float32[4, 8] = aten.index_select.default(%x, 0, %x_r)\n"
     "node %b: bfloat16[4, 8] = aten._to_copy.default(%i, dtype=@bfloat16)\n"
     "node %m: bfloat16[4, 8] = aten.mul.Tensor(%b, %w)\n"
     "node %l: bfloat16[4, 8] = aten._log_softmax.default(%m, 1, false)\n"
     "output %t\noutput %g\noutput %l\noutput %p\n",
     {}}};

// What the writer writes for a model whose weights are zeros, and a blob that is no kernel.
inline std::string written(const Manifest& manifest, std::span<const TensorBytes> weights) {
  const Folder folder;
  const std::string path = folder.file("seed.graft");
  const CarriedBlob blob{"0123456789abcdef", "machine code"};
  write_artefact(path, manifest, weights, std::span(&blob, 1));
  return bytes_of(path);
}

inline std::string bytes_of_seed(const Seed& seed) {
  Manifest manifest;
  manifest.graph = "graft-graph 1\ngraph " + seed.name + "\n" + seed.body + "end\n";
  manifest.made_by = "a test", manifest.constants = seed.constants;
  const compiler::Graph graph = compiler::parse(manifest.graph);
  std::vector<std::vector<char>> memory;
  std::vector<TensorBytes> weights;
  const auto add = [&](const std::string& name, const compiler::TensorType& type) {
    std::vector<int64_t> sizes;
    for (const compiler::Size& size : type.sizes) sizes.push_back(size.constant_part());
    auto bytes = static_cast<size_t>(type.count().constant_part()) * size_of(type.dtype);
    weights.push_back({name, type.dtype, sizes, memory.emplace_back(bytes)});
  };
  for (compiler::ValueId id : graph.inputs) {
    const compiler::GraphValue& value = graph.values[id];
    const bool weight = value.name.starts_with('w');
    manifest.inputs.push_back({value.name, weight});
    if (weight)
      add(value.name, value.type);
    else
      manifest.arguments.push_back(value.name);
  }
  for (compiler::ValueId id : graph.constants) {
    const auto found = seed.constants.find(graph.values[id].external);
    if (found != seed.constants.end()) add(found->second, graph.values[id].type);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    manifest.outputs.push_back("y" + std::to_string(i));
  }
  if (seed.body.find("from integer 0") != std::string::npos) manifest.integers = {{0, 0}};
  return written(manifest, weights);
}

// By the name of the file.
inline std::map<std::string, std::string> seed_files() {
  std::map<std::string, std::string> files;
  files["seed_small.graft"] = written(small_manifest(), small_weights());
  files["seed_beside.graft"] = written(beside_manifest(), std::vector{small_weights()[1]});
  for (const Seed& seed : kSeeds) files["seed_" + seed.name + ".graft"] = bytes_of_seed(seed);
  return files;
}

inline void write_seeds(const std::string& folder) {
  for (const auto& [name, bytes] : seed_files()) write_bytes(folder + "/" + name, bytes);
}

}  // namespace graft::deploy::test
