#include "checkpoint/megatron/zero_groups.h"

namespace bloomery {
namespace {

constexpr std::string_view kEmbedding = "language_model.embedding.";
constexpr std::int64_t kAlignment = 2;  // elements, on every rank
constexpr std::int64_t kBytes = sizeof(float);

// A stage's parameters; a tied model's last stage has the embedding too.
std::vector<std::string> names_of_stage(const MegatronExporter& model, int stage) {
  std::vector<std::string> names;
  if (stage > 0 && stage == model.layout().pipeline - 1 && model.tied()) {
    for (const std::string& name : model.names(0)) {
      if (name.starts_with(kEmbedding)) {
        names.push_back(name);
      }
    }
  }
  const std::vector<std::string> own = model.names(stage);
  names.insert(names.end(), own.begin(), own.end());
  return names;
}

bool held(const MegatronExporter& model, const std::string& name, int expert_rank) {
  const std::int64_t all = model.record().model.moe.experts_of(*layer_of_name(name));
  return *expert_of_name(name) / (all / model.layout().expert) == expert_rank;
}

}  // namespace

ExpertPlace expert_place(const ForeignLayout& layout, const ZeroRank& rank) {
  const int place = rank.data * layout.tensor + rank.tensor;
  return {place % layout.expert, place / layout.expert};
}

std::vector<ZeroShare> zero_shares(const MegatronExporter& model, const ZeroRank& rank) {
  const ForeignLayout& layout = model.layout();
  const ExpertPlace place = expert_place(layout, rank);
  const std::vector<std::string> names = names_of_stage(model, rank.stage);
  std::vector<ZeroShare> shares;
  for (const bool experts : {false, true}) {
    for (const bool decays : {true, false}) {
      ZeroShare share{.decays = decays, .experts = experts, .names = {}};
      for (const std::string& name : names) {
        if (MegatronExporter::decays(name) == decays &&
            expert_of_name(name).has_value() == experts &&
            (!experts || held(model, name, place.expert_rank))) {
          share.names.push_back(name);
          share.size += model.size(name);
        }
      }
      share.ranks = experts ? layout.data() * layout.tensor / layout.expert : layout.data();
      const std::int64_t multiple = kAlignment * share.ranks;
      share.padded_size = (share.size + multiple - 1) / multiple * multiple;
      const std::int64_t part = share.padded_size / share.ranks;
      share.begin = part * (experts ? place.share : rank.data);
      share.end = share.begin + part;
      if (!share.names.empty()) {
        shares.push_back(std::move(share));
      }
    }
  }
  return shares;
}

PyValue flat_share(const MegatronExporter& model, const ZeroShare& share, int tensor_rank,
                   const MegatronExporter::Kind& kind, bool padded) {
  const std::int64_t count = share.end - share.begin - (padded ? 0 : share.padding());
  PyValue::Tensor flat{DType::fp32, Shape{count}, {}};
  std::int64_t end = 0;
  for (const ShareFragment& part : fragments(model, share)) {
    flat.pieces.emplace_back([part, whole = model.tensor(part.name, tensor_rank, kind)] {
      const std::vector<std::byte> bytes = whole.pieces.front()();
      const auto from = bytes.begin() + part.first * kBytes;
      return std::vector(from, from + part.count * kBytes);
    });
    end = part.start + part.count;
  }
  flat.pieces.emplace_back([padding = count - end] {
    return std::vector<std::byte>(static_cast<std::size_t>(padding * kBytes));
  });
  return flat;
}

std::vector<ShareFragment> fragments(const MegatronExporter& model, const ZeroShare& share) {
  std::vector<ShareFragment> found;
  std::int64_t at = 0;
  for (const std::string& name : share.names) {
    const std::int64_t from = std::max(at, share.begin),
                       to = std::min(at + model.size(name), share.end);
    if (from < to) {
      found.push_back({name, from - at, from - share.begin, to - from});
    }
    at += model.size(name);
  }
  return found;
}

}  // namespace bloomery
