#include "parallel/vocab_embedding.h"

#include <algorithm>

#include "ops/embedding/embedding.h"
#include "parallel/conjugates.h"

namespace bloomery {

std::int64_t padded_vocabulary(std::int64_t vocabulary, std::int64_t divisible_by,
                               int num_tensor_ranks) {
  const std::int64_t multiple = divisible_by * num_tensor_ranks;
  check(vocabulary >= 1 && multiple >= 1, "a vocabulary of ", vocabulary,
        " cannot be padded to a multiple of ", multiple);
  return (vocabulary + multiple - 1) / multiple * multiple;
}

VocabEmbedding::VocabEmbedding(const Mesh& mesh, const std::string& name,
                               const VocabEmbeddingOptions& options)
    : options_(options) {
  const int num_ranks = mesh.degree(Axis::tensor);
  const std::int64_t rows =
      padded_vocabulary(options.vocabulary, options.divisible_by, num_ranks) / num_ranks;
  first_token_ = rows * mesh.coordinate(Axis::tensor);
  Box box = Box::whole({options.vocabulary, options.hidden});
  box.offset[0] = std::min(first_token_, options.vocabulary);
  box.extent[0] = std::min(first_token_ + rows, options.vocabulary) - box.offset[0];
  table_ =
      std::make_shared<Parameter>(make_parameter(name + ".tokens.weight", box, options.init, true));
  table_->local_shape = {rows, options.hidden};
  if (options.max_positions > 0) {
    positions_ = std::make_unique<Parameter>(make_parameter(
        name + ".positions.weight", Box::whole({options.max_positions, options.hidden}),
        options.position_init.value_or(options.init), true));
  }
}

Value VocabEmbedding::operator()(Context& context) const {
  const EmbeddingOptions options{.first_token = first_token_,
                                 .num_tokens = options_.vocabulary,
                                 .positions = positions_.get(),
                                 .add_positions = context.mesh.coordinate(Axis::tensor) == 0,
                                 .dtype = options_.output_dtype};
  return reduce_from_tensor(context, embedding(context, *table_, options));
}

void VocabEmbedding::collect(ParameterList& parameters) const {
  parameters.push_back(table_.get());
  if (positions_) {
    parameters.push_back(positions_.get());
  }
}

}  // namespace bloomery
