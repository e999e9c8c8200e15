#include "parallel/experts.h"

#include <algorithm>
#include <numeric>

#include "base/round_up.h"
#include "ops/arithmetic/arithmetic.h"
#include "parallel/sequence.h"

namespace bloomery {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

// Rows of x to the ranks that `counts` says, into a result of `rows` rows. Backward brings the
// gradients back; rows that nobody was sent have none.
Value travel(Context& context, Communicator& ranks, const Value& x, const Counts& counts,
             std::int64_t rows) {
  const std::int64_t columns = x.shape().back();
  const std::int64_t out = sum(counts.out), in = sum(counts.in);
  Value y = context.output(x.dtype(), {rows, columns});
  ranks.all_to_all(x.data.slice(0, out), y.data.slice(0, in), counts, context.stream);
  if (context.tape != nullptr && x.wants_grad()) {
    context.tape->record({.op = "exchange_rows",
                          .input_gradient =
                              [&ranks, x = x.slot, y = y.slot, counts, out, in](Tape& tape) {
                                const Sink sink = tape.sink(x);
                                check(!sink.add, "exchange_rows: its input has one use");
                                ranks.all_to_all(
                                    tape.grad(y).slice(0, in), sink.target.slice(0, out),
                                    {.out = counts.in, .in = counts.out}, tape.stream());
                              },
                          .shape = y.shape()});
  }
  return y;
}

// The groups of a rank as if tokens were spread evenly, where nothing was computed.
std::vector<std::int32_t> even_offsets(std::int64_t rows, std::int64_t num_experts,
                                       std::int64_t alignment, int ranks) {
  std::vector<std::int32_t> offsets;
  const std::int64_t each = rows / num_experts / alignment * alignment;
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t e = 0; e <= num_experts; ++e) {
      offsets.push_back(static_cast<std::int32_t>(e * each));
    }
  }
  return offsets;
}

}  // namespace

Value tokens_for_experts(Context& context, const Value& held) {
  Communicator& ranks = context.mesh.axis(Axis::tensor);
  if (ranks.size() == 1 || context.mesh.divides_tokens()) {
    return gather_tokens(context, held);
  }
  Value x = context.wrap(held.data);
  if (context.tape != nullptr) {
    context.tape->record({.op = "sum_input_gradient",
                          .input_gradient =
                              [&ranks, held = held.slot, x = x.slot](Tape& tape) {
                                ranks.all_reduce(tape.grad(x), Reduce::sum, tape.stream());
                                if (!tape.adopt(held, x)) {
                                  write_grad(tape.stream(), tape.grad(x), tape.sink(held));
                                }
                              },
                          .shape = x.shape()});
  }
  return x;
}

Tensor of_all_sequence_ranks(Context& context, const Tensor& rows) {
  Communicator& ranks = context.mesh.axis(Axis::context);
  if (ranks.size() == 1) {
    return rows;
  }
  Tensor all = Tensor::empty(context.stream, rows.dtype(),
                             {rows.shape()[0] * ranks.size(), rows.shape()[1]});
  ranks.all_gather(rows, all, context.stream);
  return all;
}

ExpertExchange::ExpertExchange(Context& context, const RowGroups& groups)
    : ranks_(context.mesh.axis(Axis::expert)), local_(groups), sent_rows_(groups.rows) {
  if (ranks_.size() == 1) {
    return;
  }
  Stream& stream = context.stream;
  const std::int64_t num_experts = groups.offsets.numel() - 1;
  const Tensor all = Tensor::empty(stream, DType::int32, {ranks_.size(), groups.offsets.numel()});
  ranks_.all_gather(groups.offsets, all, stream);
  lay_out(stream,
          stream.abstract()
              ? even_offsets(groups.rows, num_experts, group_alignment(stream), ranks_.size())
              : all.to_host<std::int32_t>(stream),
          num_experts, ranks_.rank(), ranks_.size());
}

// `offsets`: those of all ranks. What comes lies as [sender, expert]; experts want it the other way
// round.
void ExpertExchange::lay_out(Stream& stream, const std::vector<std::int32_t>& offsets,
                             std::int64_t num_experts, int rank, int ranks) {
  const std::int64_t own = num_experts / ranks, alignment = group_alignment(stream);
  const auto offset = [&](int of, std::int64_t expert) {
    return std::int64_t{offsets[static_cast<std::size_t>(of * (num_experts + 1) + expert)]};
  };
  std::vector<std::int64_t> arrival(static_cast<std::size_t>(ranks), 0);  // first row of a sender
  for (int other = 0; other < ranks; ++other) {
    counts_.out.push_back(offset(rank, (other + 1) * own) - offset(rank, other * own));
    counts_.in.push_back(offset(other, (rank + 1) * own) - offset(other, rank * own));
    arrival[static_cast<std::size_t>(other)] = sum(counts_.in) - counts_.in.back();
  }
  const std::int64_t received = sum(counts_.in);
  local_.rows = std::max(received, alignment);
  std::vector<std::int32_t> from, to(static_cast<std::size_t>(local_.rows), -1), begins = {0};
  for (std::int64_t expert = rank * own; expert < (rank + 1) * own; ++expert) {
    for (int sender = 0; sender < ranks; ++sender) {
      const std::int64_t first = arrival[static_cast<std::size_t>(sender)] +
                                 offset(sender, expert) - offset(sender, rank * own);
      for (std::int64_t i = 0; i < offset(sender, expert + 1) - offset(sender, expert); ++i) {
        to[static_cast<std::size_t>(first + i)] = static_cast<std::int32_t>(from.size());
        from.push_back(static_cast<std::int32_t>(first + i));
      }
    }
    begins.push_back(static_cast<std::int32_t>(from.size()));
  }
  from.resize(static_cast<std::size_t>(local_.rows), -1);
  by_expert_ = Tensor::from_host(stream, from, {local_.rows});
  by_sender_ = Tensor::from_host(stream, to, {local_.rows});
  local_.offsets = Tensor::from_host(stream, begins, {own + 1});
  if (local_.tiles) {
    std::vector<std::int32_t> tiles;
    for (std::int64_t row = 0; row < local_.rows; row += alignment) {
      const auto next = std::upper_bound(begins.begin(), begins.end(), row);
      tiles.push_back(next == begins.end() ? -1
                                           : static_cast<std::int32_t>(next - begins.begin() - 1));
    }
    local_.tiles = Tensor::from_host(stream, tiles, {local_.rows / alignment});
  }
}

Value ExpertExchange::to_experts(Context& context, const Value& rows) const {
  if (ranks_.size() == 1) {
    return rows;
  }
  const OpScope scope(context.stream, "exchange_rows");
  return move_rows(context, travel(context, ranks_, rows, counts_, local_.rows), by_expert_,
                   by_sender_);
}

Value ExpertExchange::from_experts(Context& context, const Value& rows) const {
  if (ranks_.size() == 1) {
    return rows;
  }
  const OpScope scope(context.stream, "exchange_rows");
  return travel(context, ranks_, move_rows(context, rows, by_sender_, by_expert_),
                {.out = counts_.in, .in = counts_.out}, sent_rows_);
}

}  // namespace bloomery
