// src/kernels/fold_kernel.cpp: the kernel behind a FoldProgram.
#include "kernels/fold_kernel.h"

#include "kernels/group_fold.h"
#include "kernels/work_split.h"

namespace graft {
namespace {

using ir::Address;
using ir::Builder;
using ir::Lanes;
using ir::Value;
using ir::Variable;

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

  ir::Kernel lines() {
    each_line(b_, lines_, per_item_, [&](Value line) { write_line(line); });
    return b_.finish();
  }

  ir::Kernel shared_lines(Deal deal) {
    std::vector<GroupFold> folds;
    for (const FoldPass& pass : program_.passes) {
      std::vector<ir::Type> types;
      for (const Value& value : pass.first(b_)) types.push_back(value.type());
      folds.emplace_back(b_, pass.once ? std::vector<ir::Type>() : types, deal);
    }
    const Values place = begin_line(b_.item() / kLanes);
    for (size_t i = 0; i < program_.passes.size(); ++i) {
      write_shared_pass(program_.passes[i], folds[i], place[0]);
    }
    const Value lane = cast(ir::Type::kI64, b_.local_item());  // a program may have no pass
    b_.if_(lane == 0, [&] { store(place[1], place[2], place[3]); });
    return b_.finish();
  }

  ir::Kernel single_columns() {
    each_line(b_, lines_, per_item_, [&](Value line) { write_column(line); });
    return b_.finish();
  }

  ir::Kernel columns() {
    each_line(b_, lines_, per_item_, [&](Value line) { write_block(line); });
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

  // A pass over the first element alone.
  void write_once(const FoldPass& pass, Value base) {
    load(first_element(base));
    context_.position = begin_[0] * steps_[1] + begin_[1];
    keep(pass, pass.step(pass.first(b_), context_));
  }

  Values finished(const FoldPass& pass, const Values& totals) const {
    return pass.finish ? pass.finish(totals, context_) : totals;
  }

  void keep(const FoldPass& pass, const Values& totals) {
    const Values results = finished(pass, totals);
    context_.before.insert(context_.before.end(), results.begin(), results.end());
  }

  void take(const FoldPass& pass, Value element, Value position, std::vector<Variable>& totals) {
    load(element);
    context_.position = position;
    const Values next = pass.step({totals.begin(), totals.end()}, context_);
    for (size_t k = 0; k < totals.size(); ++k) totals[k] = next[k];
  }

  void write_shared_pass(const FoldPass& pass, GroupFold& fold, Value base) {
    if (pass.once) return write_once(pass, base);
    const Values first = pass.first(b_);
    std::vector<Variable> totals(first.begin(), first.end());
    b_.loop(begin_[0], end_[0], [&](Value i) {
      const Value row = base + i * stride_[0];
      const auto element = [&](Value j) {
        take(pass, unit_ ? row + j : row + j * stride_[1], i * steps_[1] + j, totals);
      };
      b_.loop(begin_[1] + fold.lane(), end_[1], element, b_.i64(kLanes));
    });
    keep(pass, fold.fold({totals.begin(), totals.end()}, pass.combine));
  }

  void write_column(Value line) {
    const Value chunks = chunks_[0] * chunks_[1];
    const Value column = line % columns_, rest = line / columns_;
    const Value chunk = rest % chunks, outer = rest / chunks;
    const Value base = outer * in_[0] + (unit_ ? column : column * in_[1]);
    cut(chunk);
    load_kept(outer * columns_ + column);
    context_.before.clear();
    for (const FoldPass& pass : program_.passes) {
      if (pass.once) {
        write_once(pass, base);
        continue;
      }
      const Values first = pass.first(b_);
      std::vector<Variable> totals(first.begin(), first.end());
      b_.loop(begin_[0], end_[0], [&](Value i) {
        b_.loop(begin_[1], end_[1], [&](Value j) {
          take(pass, base + i * stride_[0] + j * stride_[1], i * steps_[1] + j, totals);
        });
      });
      keep(pass, {totals.begin(), totals.end()});
    }
    store(outer, column, chunk);
  }

  void write_line_pass(const FoldPass& pass, Value base) {
    if (pass.once) return write_once(pass, base);
    const Values first = pass.first(b_);
    std::vector<Variable> totals(first.begin(), first.end());
    b_.loop(begin_[0], end_[0], [&](Value i) {
      const Value row = base + i * stride_[0];
      const Values folded = ir::fold(
          first, begin_[1], end_[1],
          [&](const Values& accumulators, Value j) {
            load(unit_ ? row + j : row + j * stride_[1]);
            context_.position = i * steps_[1] + j;
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
    const Value base = outer * in_[0] + (unit_ ? column : column * in_[1]);
    const Value kept = outer * columns_ + column;
    cut(chunk);
    std::vector<Lanes> results;
    for (const FoldPass& pass : program_.passes) {
      write_block_pass(pass, base, kept, width, results);
    }
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

  void write_block_pass(const FoldPass& pass, Value base, Value kept, Value width,
                        std::vector<Lanes>& results) {
    const Values first = pass.first(b_);
    std::vector<Lanes> totals;
    for (const Value& value : first) totals.emplace_back(b_, value.type(), kFoldColumns);
    b_.vector_loop(b_.i64(0), b_.i64(kFoldColumns), [&](Value lane) {
      for (size_t k = 0; k < totals.size(); ++k) totals[k].store(lane, first[k]);
    });
    const auto row = [&](Value base_of_row, Value position) {
      const auto body = [&](Value lane) {
        load(unit_ ? base_of_row + lane : base_of_row + lane * in_[1]);
        load_kept(kept + lane);
        load_results(results, lane);
        context_.position = position;
        const Values next = pass.step(loaded(totals, lane), context_);
        for (size_t k = 0; k < totals.size(); ++k) totals[k].store(lane, next[k]);
      };
      // A constant trip count lets the compiler keep the totals in registers.
      b_.if_(
          width == kFoldColumns, [&] { b_.vector_loop(b_.i64(0), b_.i64(kFoldColumns), body); },
          [&] { b_.vector_loop(b_.i64(0), width, body); });
    };
    if (pass.once) {
      row(first_element(base), begin_[0] * steps_[1] + begin_[1]);
    } else {
      b_.loop(begin_[0], end_[0], [&](Value i) {
        b_.loop(begin_[1], end_[1],
                [&](Value j) { row(base + i * stride_[0] + j * stride_[1], i * steps_[1] + j); });
      });
    }
    if (pass.finish) {
      b_.vector_loop(b_.i64(0), b_.i64(kFoldColumns), [&](Value lane) {
        load_results(results, lane);
        const Values kept_totals = finished(pass, loaded(totals, lane));
        for (size_t k = 0; k < totals.size(); ++k) totals[k].store(lane, kept_totals[k]);
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
                      Deal deal) {
  const bool lines = form == FoldForm::kLines, spans = deal == Deal::kSpans;
  const ir::Family family = lines && !spans ? ir::Family::kGpuLike : ir::Family::kCpuLike;
  FoldWriter writer(name, program, unit, family);
  if (spans) return lines ? writer.lines() : writer.columns();
  return lines ? writer.shared_lines(deal) : writer.single_columns();
}

}  // namespace graft
