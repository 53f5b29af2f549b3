// src/compiler/passes.h: the passes, one source file each.
#pragma once

#include "compiler/graph.h"

namespace graft::compiler {

// Each returns how many changes it made, keeps names and source lines of what stays, and leaves a
// graph that verify() accepts if it was given one. None merges, moves or removes effects.

// Computes nodes whose operands are constants, where the result is one number or at most 4096
// elements: filling, casts, arithmetic that is exactly rounded, views of one number.
int fold_constants(Graph& graph);

// Removes clones and casts that change nothing, views that are a value that exists already, and
// views of views where both are row-major.
int remove_copies(Graph& graph);

// x * 1, x / 1, x - 0, integer x + 0, x ^ 1, -(-x), relu of relu, where with equal branches, casts
// to a wider dtype and back. Only what holds for NaN, infinities and the sign of zero.
int simplify_algebra(Graph& graph);

// Merges nodes that compute the same from the same (common subexpressions) and equal constants.
// What reads memory that is written is merged only with what reads it in the same state.
int number_values(Graph& graph);

// Drops nodes without effects and constants that nothing uses.
int remove_dead_code(Graph& graph);

// Casts of a transposed or permuted value become views of the cast value, so that all users share
// the cast.
int hoist_casts(Graph& graph);

// A convolution whose only user is an inference batch norm with weights that no node writes becomes
// one convolution with scaled weights. Rounds differently: for inference only.
int fold_batch_norms(Graph& graph);

// Writes softmax, log-softmax and layer norm along the last dimensions as reductions and
// elementwise nodes, so that they fuse. Rounds differently where halves are stored.
int expand_composites(Graph& graph);

// Joins a matrix product or convolution with the elementwise nodes that alone use its result:
// groups matmul and convolution. Changes no node.
int fuse_epilogues(Graph& graph);

// Joins elementwise nodes, and reductions along the last dimensions with what feeds and uses them:
// groups pointwise and reduction. Changes no node; never makes a cycle; at most 64 nodes and 12
// tensors from outside a group.
int fuse(Graph& graph);

// Orders units so that few bytes live at once, and the nodes of a group one after another. Keeps an
// order that is not worse than the one given.
int schedule(Graph& graph);

}  // namespace graft::compiler
