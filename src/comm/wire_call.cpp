#include "comm/wire.h"

namespace bloomery {

std::string WireCall::text() const {
  constexpr const char* kNames[] = {"all_reduce", "all_gather", "reduce_scatter",
                                    "broadcast",  "all_to_all", "exchange"};
  std::string detail;
  if (name == Name::all_reduce || name == Name::reduce_scatter) {
    detail = reduce == Reduce::sum ? " sum" : " max";
  } else if (name == Name::broadcast) {
    detail = concat(" from rank ", root);
  }
  return concat(kNames[static_cast<int>(name)], detail, " of ", count, " ", dtype);
}

bool WireCall::same(const WireCall& other) const {
  return name == other.name && reduce == other.reduce && dtype == other.dtype &&
         root == other.root && count == other.count;
}

}  // namespace bloomery
