#include "apps/bench/bench.h"

namespace bloomery {

int bench(const Arguments& arguments, std::ostream& out) {
  return dispatch("bloomery bench",
                  {
                      {"data", "the index of a large corpus", bench_data},
                      {"generate", "tokens per second of generation", bench_generate},
                      {"gpt", "whole training steps of a GPT", bench_gpt},
                      {"ops", "each op beside the copy and matrix-product ceilings", bench_ops},
                      {"tokenizer", "how fast a tokenizer encodes files", bench_tokenizer},
                  },
                  arguments, out);
}

}  // namespace bloomery
