// What stands for a sequence as a whole: its first token, and what layers make of that.
#pragma once

#include "autograd/context.h"
#include "nn/block.h"

namespace bloomery {

// A linear layer that every tensor rank holds whole and applies to what it has.
struct WholeLinear {
  // The rows it is applied to are parts of the tokens where those are divided, or not.
  enum class Rows : std::uint8_t { local_tokens, sequences };

  WholeLinear(const std::string& name, std::int64_t out, std::int64_t in, const Init& init,
              const Mesh& mesh, Rows rows);
  void collect(ParameterList& parameters) const;

  std::unique_ptr<Parameter> weight, bias;
};

// The first token of each sequence, [sequences, hidden], the same on all tensor ranks whoever holds
// it. So are gradients, and the sum over the ranks that hold first tokens has those of its parts.
Value first_of_sequences(Context& context, const Value& x);

// BERT's: tanh of a linear layer of the first tokens.
Value pooled(Context& context, const Value& x, const WholeLinear& pooler);

}  // namespace bloomery
