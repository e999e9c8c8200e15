#include "apps/bench/bench.h"

namespace bloomery {

int bench(const Arguments& arguments, std::ostream& out) {
  return dispatch(
      "bloomery bench",
      {
          {"data", "Build the index of a large corpus", bench_data},
          {"generate", "Measure tokens per second of generation", bench_generate},
          {"minhash", "Measure MinHash signatures of documents", bench_minhash},
          {"offload", "Measure optimizer updates in host memory or files", bench_offload},
          {"ops", "Measure each op against copy and matrix-product ceilings", bench_ops},
          {"tokenizer", "Measure the encoding speed of a tokenizer", bench_tokenizer},
          {"train", "Measure whole training steps of a model", bench_train},
      },
      arguments, out);
}

}  // namespace bloomery
