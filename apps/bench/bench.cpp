#include "apps/bench/bench.h"

namespace bloomery {

int bench(const Arguments& arguments, std::ostream& out) {
  return dispatch("bloomery bench",
                  {
                      {"data", "the index of a large corpus", bench_data},
                      {"generate", "tokens per second of generation", bench_generate},
                      {"minhash", "how fast documents get their signatures", bench_minhash},
                      {"offload", "updates of state on the host or in files", bench_offload},
                      {"ops", "each op beside the copy and matrix-product ceilings", bench_ops},
                      {"tokenizer", "how fast a tokenizer encodes files", bench_tokenizer},
                      {"train", "whole training steps of a model", bench_train},
                  },
                  arguments, out);
}

}  // namespace bloomery
