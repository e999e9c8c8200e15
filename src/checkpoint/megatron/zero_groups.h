// What ZeRO stage 1 makes of a rank's parameters: groups, each flattened and divided by ranks.
#pragma once

#include "checkpoint/megatron/foreign_write.h"

namespace bloomery {

struct ZeroRank {
  int stage = 0, tensor = 0, data = 0;
};

// The part of a group that one rank has the states of.
struct ZeroShare {
  bool decays = false, experts = false;
  std::vector<std::string> names;  // of the whole group
  int ranks = 1;                   // that divide it
  std::int64_t size = 0, padded_size = 0;
  std::int64_t begin = 0, end = 0;  // elements of the share, padding included

  std::int64_t padding() const { return std::max<std::int64_t>(0, end - std::max(begin, size)); }
};

// An expert rank of `layout`, and which of the ranks with the same experts this is.
struct ExpertPlace {
  int expert_rank, share;
};
ExpertPlace expert_place(const ForeignLayout& layout, const ZeroRank& rank);

// Groups that are empty are left out.
std::vector<ZeroShare> zero_shares(const MegatronExporter& model, const ZeroRank& rank);

// The numbers of a share: exact weights or a tensor of the state. Zeros pad it, unless `padded` is
// false.
PyValue flat_share(const MegatronExporter& model, const ZeroShare& share, int tensor_rank,
                   const MegatronExporter::Kind& kind, bool padded);

// Where in a share each of its parameters lies.
struct ShareFragment {
  std::string name;
  std::int64_t first;  // element of the parameter
  std::int64_t start;  // element of the share
  std::int64_t count;
};
std::vector<ShareFragment> fragments(const MegatronExporter& model, const ZeroShare& share);

}  // namespace bloomery
