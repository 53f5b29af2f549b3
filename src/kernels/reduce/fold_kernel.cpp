// src/kernels/reduce/fold_kernel.cpp: the kernel behind a FoldProgram.
#include "kernels/reduce/fold_kernel.h"

#include "kernels/launch/group_fold.h"
#include "kernels/launch/work_split.h"

namespace graft {
namespace {

using namespace ir;

// Elements of a column that are combined before they join the rest.
constexpr int64_t kFoldRows = 64;

class FoldWriter {
 public:
  FoldWriter(const std::string& name, const FoldProgram& program, bool unit, ir::Family family)
      : program_(program), unit_(unit), b_(name, family) {
    for (graft_dtype dtype : program.inputs) inputs_.push_back(b_.read(dtype));
    for (graft_dtype dtype : program.kept_inputs) kept_inputs_.push_back(b_.read(dtype));
    for (graft_dtype dtype : program.outputs) outputs_.push_back(b_.write(dtype));
    for (int i = 0; i < program.scalars; ++i) {
      context_.scalars.push_back(b_.scalar(GRAFT_FLOAT64));
    }
    lines_ = b_.index();
    per_item_ = b_.index();
    columns_ = b_.index();
    in_[0] = b_.index();
    in_[1] = b_.index();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      out_outer_.push_back(b_.index());
      out_inner_.push_back(b_.index());
    }
    chunk_stride_ = b_.index();
    for (int i = 0; i < 2; ++i) {
      steps_[i] = b_.index();
      stride_[i] = b_.index();
      chunk_size_[i] = b_.index();
      chunks_[i] = b_.index();
    }
  }

  ir::Kernel shared_lines(WorkMapping deal) {
    std::vector<GroupFold> folds;
    for (const FoldPass& pass : program_.passes) {
      std::vector<ir::Type> types;
      for (const Value& value : pass.first(b_)) types.push_back(value.type());
      const bool alone = pass.take == FoldTake::kFirst;
      folds.emplace_back(b_, alone ? std::vector<ir::Type>() : types, deal);
    }
    const Values place = begin_line(b_.item() / kLanes);
    for (size_t i = 0; i < program_.passes.size(); ++i) {
      write_pass(program_.passes[i], place[0], unit_, &folds[i]);
    }
    const Value lane = cast(ir::Type::kI64, b_.local_item());  // a program may have no pass
    b_.if_(lane == 0, [&] { store(place[1], place[2], place[3]); });
    return b_.finish();
  }

  // A work-item takes lines, blocks of columns, or columns.
  ir::Kernel alone(FoldForm form, bool blocks) {
    each_line(b_, lines_, per_item_, [&](Value line) {
      if (form == FoldForm::kLines) return write_line(line);
      blocks ? write_block(line) : write_column(line);
    });
    return b_.finish();
  }

 private:
  void cut(Value chunk) {
    const Value at[2] = {chunk / chunks_[1], chunk % chunks_[1]};
    for (int i = 0; i < 2; ++i) {
      begin_[i] = at[i] * chunk_size_[i];
      end_[i] = ir::minimum(begin_[i] + chunk_size_[i], steps_[i]);
    }
    context_.count = (end_[0] - begin_[0]) * (end_[1] - begin_[1]);
  }

  void load(Value element) {
    context_.loaded.clear();
    for (const Address& input : inputs_) context_.loaded.push_back(input.load(element));
  }

  void load_kept(Value position) {
    context_.kept.clear();
    for (const Address& input : kept_inputs_) context_.kept.push_back(input.load(position));
  }

  void store(Value outer, Value inner, Value chunk) {
    const Values results = program_.finish(context_);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      outputs_[i].store(outer * out_outer_[i] + inner * out_inner_[i] + chunk * chunk_stride_,
                        results[i]);
    }
  }

  // Where the line's elements begin, its kept position in both loops, and its chunk.
  Values begin_line(Value line) {
    const Value chunks = chunks_[0] * chunks_[1];
    const Value chunk = line % chunks, kept = line / chunks;
    const Value outer = kept / columns_, inner = kept % columns_;
    cut(chunk);
    load_kept(kept);
    context_.before.clear();
    return {outer * in_[0] + inner * in_[1], outer, inner, chunk};
  }

  void write_line(Value line) {
    const Values place = begin_line(line);
    for (const FoldPass& pass : program_.passes) write_line_pass(pass, place[0]);
    store(place[1], place[2], place[3]);
  }

  // Where the chunk's first element lies, when the elements begin at base.
  Value first_element(Value base) const {
    return base + begin_[0] * stride_[0] + begin_[1] * stride_[1];
  }

  void write_first(const FoldPass& pass, Value base) {
    load(first_element(base));
    context_.position = begin_[0] * steps_[1] + begin_[1];
    keep(pass, pass.step(pass.first(b_), context_));
  }

  Value sampled(const FoldPass& pass) {
    return ir::minimum(end_[1] - begin_[1], b_.i64(pass.sample));
  }

  Values finished(const FoldPass& pass, const Values& totals) {
    if (pass.take == FoldTake::kSample) context_.sampled = sampled(pass);
    return pass.finish ? pass.finish(totals, context_) : totals;
  }

  void keep(const FoldPass& pass, const Values& totals) {
    const Values results = finished(pass, totals);
    context_.before.insert(context_.before.end(), results.begin(), results.end());
  }

  // The loop over the rows of a pass: none if nothing is taken.
  template <class Body>
  void rows(Value end, Value base, Body body) {
    b_.loop(begin_[0], end, [&](Value i) { body(base + i * stride_[0], i * steps_[1]); });
  }

  Value row_end(const FoldPass& pass) const {
    if (pass.take == FoldTake::kSample) return ir::minimum(begin_[0] + 1, end_[0]);
    return pass.needed ? select(pass.needed(context_), end_[0], begin_[0]) : end_[0];
  }

  // The loop over the elements of a row that a pass takes: every share-th one from the first on.
  template <class Body>
  void elements(const FoldPass& pass, Value first, int64_t share, Body body) {
    Value step = b_.i64(1), end = end_[1];
    if (pass.take == FoldTake::kSample) {
      step = ir::maximum((end_[1] - begin_[1]) / pass.sample, step);
      end = begin_[1] + step * sampled(pass);
    }
    b_.loop(begin_[1] + first * step, end, body, step * share);
  }

  void take(const FoldPass& pass, Value element, Value position, std::vector<Variable>& totals) {
    load(element);
    context_.position = position;
    const Values next = pass.step({totals.begin(), totals.end()}, context_);
    for (size_t k = 0; k < totals.size(); ++k) totals[k] = next[k];
  }

  void write_column(Value line) {
    const Value chunks = chunks_[0] * chunks_[1];
    const Value column = line % columns_, rest = line / columns_;
    const Value chunk = rest % chunks, outer = rest / chunks;
    const Value base = outer * in_[0] + (unit_ ? column : column * in_[1]);
    cut(chunk);
    load_kept(outer * columns_ + column);
    context_.before.clear();
    for (const FoldPass& pass : program_.passes) write_pass(pass, base, false);
    store(outer, column, chunk);
  }

  // By one work-item, or by those of a group, which combine what each of them has.
  void write_pass(const FoldPass& pass, Value base, bool unit, GroupFold* group = nullptr) {
    if (pass.take == FoldTake::kFirst) return write_first(pass, base);
    const Values first = pass.first(b_);
    std::vector<Variable> totals(first.begin(), first.end());
    rows(row_end(pass), base, [&](Value row, Value position) {
      const Value own = group ? group->lane() : b_.i64(0);
      elements(pass, own, group ? kLanes : 1, [&](Value j) {
        take(pass, unit ? row + j : row + j * stride_[1], position + j, totals);
      });
    });
    const Values all(totals.begin(), totals.end());
    keep(pass, group ? group->fold(all, pass.combine) : all);
  }

  void write_line_pass(const FoldPass& pass, Value base) {
    if (pass.take != FoldTake::kAll) return write_pass(pass, base, false);
    const Values first = pass.first(b_);
    std::vector<Variable> totals(first.begin(), first.end());
    rows(row_end(pass), base, [&](Value row, Value position) {
      const Values folded = ir::fold(
          first, begin_[1], end_[1],
          [&](const Values& accumulators, Value j) {
            load(unit_ ? row + j : row + j * stride_[1]);
            context_.position = position + j;
            return pass.step(accumulators, context_);
          },
          pass.combine);
      const Values joined = pass.combine({totals.begin(), totals.end()}, folded);
      for (size_t k = 0; k < totals.size(); ++k) totals[k] = joined[k];
    });
    keep(pass, {totals.begin(), totals.end()});
  }

  void write_block(Value line) {
    const Value blocks = (columns_ + (kFoldColumns - 1)) / kFoldColumns;
    const Value chunks = chunks_[0] * chunks_[1];
    const Value column = line % blocks * kFoldColumns, rest = line / blocks;
    const Value chunk = rest % chunks, outer = rest / chunks;
    const Value width = ir::minimum(columns_ - column, b_.i64(kFoldColumns));
    const Value kept = outer * columns_ + column;
    const Block block{outer * in_[0] + (unit_ ? column : column * in_[1]), kept, width};
    cut(chunk);
    std::vector<Lanes> results;
    for (const FoldPass& pass : program_.passes) write_block_pass(pass, block, results);
    b_.vector_loop(b_.i64(0), width, [&](Value lane) {
      load_kept(kept + lane);
      load_results(results, lane);
      store(outer, column + lane, chunk);
    });
  }

  static Values loaded(const std::vector<Lanes>& from, Value lane) {
    Values values;
    for (const Lanes& lanes : from) values.push_back(lanes.load(lane));
    return values;
  }

  void load_results(const std::vector<Lanes>& results, Value lane) {
    context_.before = loaded(results, lane);
  }

  // The same for a block of columns: one that needs the pass is enough.
  Value row_end(const FoldPass& pass, Value width, const std::vector<Lanes>& results) {
    if (!pass.needed) return row_end(pass);
    const auto needs = [&](Value lane) {
      load_results(results, lane);
      return select(pass.needed(context_), b_.i64(1), b_.i64(0));
    };
    const Value columns =
        ir::reduce(b_.i64(0), b_.i64(0), width, needs, [](Value x, Value y) { return x + y; });
    return select(columns > 0, end_[0], begin_[0]);
  }

  // Accumulators of a block of columns, as a pass begins.
  std::vector<Lanes> begun(const FoldPass& pass) {
    const Values first = pass.first(b_);
    std::vector<Lanes> sums;
    for (const Value& value : first) sums.emplace_back(b_, value.type(), kFoldColumns);
    begin_again(pass, sums);
    return sums;
  }

  void begin_again(const FoldPass& pass, const std::vector<Lanes>& sums) {
    const Values first = pass.first(b_);
    b_.vector_loop(b_.i64(0), b_.i64(kFoldColumns),
                   [&](Value lane) { store_all(sums, lane, first); });
  }

  static void store_all(const std::vector<Lanes>& to, Value lane, const Values& values) {
    for (size_t k = 0; k < to.size(); ++k) to[k].store(lane, values[k]);
  }

  struct Block {
    Value base, kept, width;
  };

  void take_row(const FoldPass& pass, const Block& block, Value base, Value position,
                const std::vector<Lanes>& results, const std::vector<Lanes>& sums) {
    const auto body = [&](Value lane) {
      load(unit_ ? base + lane : base + lane * in_[1]);
      load_kept(block.kept + lane);
      load_results(results, lane);
      context_.position = position;
      store_all(sums, lane, pass.step(loaded(sums, lane), context_));
    };
    // A constant trip count lets the compiler keep the sums in registers.
    b_.if_(
        block.width == kFoldColumns, [&] { b_.vector_loop(b_.i64(0), b_.i64(kFoldColumns), body); },
        [&] { b_.vector_loop(b_.i64(0), block.width, body); });
  }

  // All elements in parts of kFoldRows: a sum is off by the roundoff of as many additions as a part
  // has, and of as many as there are parts.
  void take_parts(const FoldPass& pass, const Block& block, const std::vector<Lanes>& results,
                  const std::vector<Lanes>& totals) {
    const Value rows = ir::maximum(kFoldRows / chunk_size_[1], b_.i64(1));
    const Value last = row_end(pass, block.width, results);
    const std::vector<Lanes> part = begun(pass);
    const auto part_of = [&](Value outer, Value inner) {
      b_.loop(outer, ir::minimum(outer + rows, last), [&](Value i) {
        b_.loop(inner, ir::minimum(inner + kFoldRows, end_[1]), [&](Value j) {
          take_row(pass, block, block.base + i * stride_[0] + j * stride_[1], i * steps_[1] + j,
                   results, part);
        });
      });
      b_.vector_loop(b_.i64(0), b_.i64(kFoldColumns), [&](Value lane) {
        store_all(totals, lane, pass.combine(loaded(totals, lane), loaded(part, lane)));
      });
      begin_again(pass, part);
    };
    b_.loop(
        begin_[0], last,
        [&](Value i) {
          b_.loop(
              begin_[1], end_[1], [&](Value j) { part_of(i, j); }, b_.i64(kFoldRows));
        },
        rows);
  }

  void write_block_pass(const FoldPass& pass, const Block& block, std::vector<Lanes>& results) {
    const std::vector<Lanes> totals = begun(pass);
    if (pass.take == FoldTake::kAll && pass.rounds) {
      take_parts(pass, block, results, totals);
    } else if (pass.take == FoldTake::kFirst) {
      take_row(pass, block, first_element(block.base), begin_[0] * steps_[1] + begin_[1], results,
               totals);
    } else {
      rows(row_end(pass, block.width, results), block.base, [&](Value row, Value position) {
        elements(pass, b_.i64(0), 1, [&](Value j) {
          take_row(pass, block, row + j * stride_[1], position + j, results, totals);
        });
      });
    }
    if (pass.finish) {
      b_.vector_loop(b_.i64(0), b_.i64(kFoldColumns), [&](Value lane) {
        load_results(results, lane);
        store_all(totals, lane, finished(pass, loaded(totals, lane)));
      });
    }
    results.insert(results.end(), totals.begin(), totals.end());
  }

  const FoldProgram& program_;
  const bool unit_;
  Builder b_;
  FoldContext context_;
  std::vector<Address> inputs_, kept_inputs_, outputs_;
  Value lines_, per_item_, columns_, in_[2], chunk_stride_;
  Values out_outer_, out_inner_;
  Value steps_[2], stride_[2], chunk_size_[2], chunks_[2], begin_[2], end_[2];
};

}  // namespace

ir::Kernel build_fold(const std::string& name, const FoldProgram& program, FoldForm form, bool unit,
                      WorkMapping deal) {
  const bool lines = form == FoldForm::kLines, spans = deal == WorkMapping::kSpans;
  const ir::Family family = lines && !spans ? ir::Family::kGpuLike : ir::Family::kCpuLike;
  FoldWriter writer(name, program, unit, family);
  if (lines && !spans) return writer.shared_lines(deal);
  return writer.alone(form, spans);
}

}  // namespace graft
