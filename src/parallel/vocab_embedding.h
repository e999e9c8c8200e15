// Embedding of tokens, positions and token types, with the vocabulary sharded over the tensor
// ranks.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "autograd/context.h"
#include "comm/mesh.h"

namespace bloomery {

struct VocabEmbeddingOptions {
  std::int64_t vocabulary = 0;
  std::int64_t divisible_by = 128;  // each rank's rows are a multiple of this
  std::int64_t hidden = 0;
  std::int64_t max_positions = 0;    // 0: no position table
  std::int64_t num_token_types = 0;  // 0: no table of token types
  Init init;
  std::optional<Init> position_init, type_init;  // none: as the tokens
  std::optional<DType> output_dtype;             // the table's, or its accumulation dtype
};

// Megatron's rule: the next multiple of divisible_by * num_tensor_ranks.
std::int64_t padded_vocabulary(std::int64_t vocabulary, std::int64_t divisible_by,
                               int num_tensor_ranks);

class VocabEmbedding {
 public:
  // Parameters "<name>.tokens.weight" [vocabulary, hidden], of which this rank holds the rows from
  // first_token() (rows beyond the vocabulary are padding of the local buffer, always zero and
  // outside the box), "<name>.positions.weight" [max_positions, hidden] and
  // "<name>.token_types.weight" [num_token_types, hidden], whole on every rank.
  VocabEmbedding(const Mesh& mesh, const std::string& name, const VocabEmbeddingOptions& options);

  // [tokens, hidden], for the tokens of the context's batch that are held here (sequence.h).
  Value operator()(Context& context) const;
  void collect(ParameterList& parameters) const;

  std::int64_t first_token() const { return first_token_; }
  const std::shared_ptr<Parameter>& table() const { return table_; }  // for a tied output

 private:
  VocabEmbeddingOptions options_;
  std::int64_t first_token_;
  std::shared_ptr<Parameter> table_;
  std::unique_ptr<Parameter> positions_, types_;
};

}  // namespace bloomery
