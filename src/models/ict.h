// The inverse cloze task's model: two towers, each a BERT without heads, that give texts vectors.
// Those of a query and of the text that answers it are to have a large product.
#pragma once

#include "models/model.h"

namespace bloomery {

struct IctOptions {
  bool shared = false;             // one tower for both
  std::int64_t projection = 0;     // width of the vectors; 0: the hidden size, as they are
  bool score_scaling = false;      // products are divided by the square root of the hidden size
  std::vector<std::int64_t> topk;  // accuracies that are told
};

}  // namespace bloomery
