// Experts that several ranks share: the ranks of the tensor axis each hold a part of every expert,
// those of the expert axis different experts, to which rows travel and come back.
#pragma once

#include "autograd/context.h"
#include "comm/mesh.h"
#include "ops/moe/rows.h"

namespace bloomery {

// The tokens held here to all tokens of the batch, on every tensor rank; what each rank finds for
// the gradient of the result is a part of a sum, which backward forms.
Value tokens_for_experts(Context& context, const Value& held);

// The same rows of every rank of the context axis, one rank after another; without gradients.
Tensor of_all_sequence_ranks(Context& context, const Tensor& rows);

// Rows in groups, one for each expert of the model, and in groups for the experts held here.
// Collective over the expert axis. Where that has several ranks the host waits for the sizes of the
// groups: what a rank receives, and so its memory, depends on them.
class ExpertExchange {
 public:
  ExpertExchange(Context& context, const RowGroups& groups);

  const RowGroups& groups() const { return local_; }
  Value to_experts(Context& context, const Value& rows) const;
  Value from_experts(Context& context, const Value& rows) const;

 private:
  void lay_out(Stream& stream, const std::vector<std::int32_t>& offsets, std::int64_t num_experts,
               int rank, int ranks);

  Communicator& ranks_;
  RowGroups local_;
  std::int64_t sent_rows_ = 0;  // of the buffer that they are sorted in
  Counts counts_;
  Tensor by_expert_, by_sender_;  // received rows in the order of local_, and the reverse
};

}  // namespace bloomery
