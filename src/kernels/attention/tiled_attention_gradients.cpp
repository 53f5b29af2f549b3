// src/kernels/attention/tiled_attention_gradients.cpp: launches attention's gradients on GPU-like
// devices.
#include "kernels/attention/tiled_attention_gradients.h"

#include "kernels/attention/plan.h"
#include "kernels/attention/tiled_attention.h"
#include "kernels/launch/workspace.h"
#include "kernels/matmul/tile_launch.h"
#include "runtime/driver/open_device.h"

namespace graft {
bool tiles_attention(OpenDevice& device, const Attention& call) {
  const graft_device_properties& has = device.properties();
  return AttentionTile::forward(has, call) && AttentionTile::query_gradient(has, call) &&
         AttentionTile::key_gradient(has, call);
}

bool tiled_attention_backward(Stream& stream, const TensorView& grad_query,
                              const TensorView& grad_key, const TensorView& grad_value,
                              const TensorView& grad_output, const Attention& given) {
  if (!tiles_attention(stream.device(), given)) return false;
  const graft_device_properties& device = stream.device().properties();
  const auto query_tile = AttentionTile::query_gradient(device, given);
  const auto key_tile = AttentionTile::key_gradient(device, given);
  Attention call = given;
  const TiledAttention query(call, *query_tile), key(call, *key_tile);
  const ScratchTensor slopes(stream, per_row(call.query), query.sums());
  std::optional<ScratchTensor> output, logsumexp;
  if (call.output == nullptr || call.logsumexp == nullptr) {
    output.emplace(stream, grad_output, call.query.dtype);
    logsumexp.emplace(stream, per_row(call.query), query.sums());
    call.output = &output->view(), call.logsumexp = &logsumexp->view();
    attention(stream, *call.output, *call.logsumexp, call);
  }
  const bool whole = AttentionPlan(call).whole({});
  Arguments rows;
  rows.write(grad_query).write(slopes.view()).read(*call.logsumexp);
  rows.read(*call.output).read(grad_output);
  for (const TensorView* view : {&grad_query, call.output, &grad_output}) {
    AttentionOperands::append_tensor(rows, *view);
  }
  AttentionOperands::append(rows, call, whole);
  const std::string row_key = query.key("attention_query_gradient");
  const auto make_rows = [&] { return query_gradient_kernel(row_key, query); };
  launch_kernel(stream, row_key, tiles_of(*query_tile, call.query), rows, make_rows,
                query_tile->scores.group());
  Arguments columns;
  columns.write(grad_key).write(grad_value).read(slopes.view()).read(*call.logsumexp);
  columns.read(grad_output);
  for (const TensorView* view : {&grad_key, &grad_value, &grad_output}) {
    AttentionOperands::append_tensor(columns, *view);
  }
  AttentionOperands::append(columns, call, whole);
  const std::string column_key = key.key("attention_key_gradient");
  const auto make_columns = [&] { return key_gradient_kernel(column_key, key); };
  launch_kernel(stream, column_key, tiles_of(*key_tile, call.key), columns, make_columns,
                key_tile->scores.group());
  return true;
}

}  // namespace graft
