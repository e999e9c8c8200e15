#include "bench.h"

namespace bloomery {

int bench(const Arguments& arguments, std::ostream& out) {
  return dispatch("bloomery bench",
                  {
                      {"ops", "each op beside the copy and matrix-product ceilings", bench_ops},
                  },
                  arguments, out);
}

}  // namespace bloomery
